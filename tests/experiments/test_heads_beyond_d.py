"""Rows of `heads_beyond_d` say what was put in, where risks are powers of the number of heads."""

import json

import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.heads.heads_beyond_d import claims, compute
from experiments.heads.heads_beyond_d.config import FIRST, FULL, TIERS, counts, kind_of
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.judging.claims import evidence
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt
from lsa_lab.store import results


def risks_like(power, config):
    """A Dataset in which risk is power(heads), whatever n is; twice that in layer 1 alone."""
    arrays, spread = {}, np.array([1.0, 1.1, 0.9])
    for name, spec in config.models:
        kind, heads = kind_of(spec)
        risk = power(heads) * (2 if kind == FIRST else 1) * spread[: spec.training.seeds]
        arrays[f"risk, {name}"] = (("seed", "shots"), np.repeat(risk[:, None], 5, axis=1))
        arrays[f"loss, {name}"] = (("seed", "block"), np.ones((len(risk), 12)))
    arrays["rule_risk"] = (("rule", "shots"), np.full((5, 5), 0.5))
    rules = ["ridge", "rotation-equivariant Bayes", "Lasso", "sparse Bayes", "least squares"]
    coordinates = {"shots": list(config.shots), "rule": rules}
    attributes = {"config": json.dumps(results.plain(config))}
    return xr.Dataset(arrays, coordinates, attributes)


def samples(power, config):
    return evidence(claims, risks_like(power, config))[1]


def test_a_kink_at_d_is_seen_and_a_power_has_none():
    config = TIERS["laptop"]
    kinked = samples(lambda heads: 1 / min(heads, 8), config)
    straight = samples(lambda heads: 1 / heads, config)
    for kind in (FIRST, FULL):
        np.testing.assert_allclose(kinked[f"up_to_d_{kind}"], 0.5)
        np.testing.assert_allclose(kinked[f"beyond_d_{kind}"], 1)
        np.testing.assert_allclose(kinked[f"kink_{kind}"], 1)
        np.testing.assert_allclose(straight[f"kink_{kind}"], 0, atol=1e-12)
        np.testing.assert_allclose(straight[f"beyond_d_{kind}"], 8 / 12)
    np.testing.assert_allclose(kinked["first_suffices"], 2)
    np.testing.assert_allclose(np.median(kinked["full_ridge"]), 1 / 4)


def test_seeds_that_diverged_or_that_a_row_lacks_are_left_out():
    left, right = claims.paired(np.array([1.0, np.nan, 3.0, 4.0]), np.array([5.0, 6.0, 7.0]))
    assert left.tolist() == [1, 3]
    assert right.tolist() == [5, 7]


def test_the_numbers_of_heads_around_d_are_those_of_the_models():
    assert counts(TIERS["laptop"]) == {FIRST: (4, 8, 12), FULL: (4, 8, 12)}
    assert counts(TIERS["smoke"]) == {FIRST: (1, 2, 3), FULL: (1, 2, 3)}


def test_least_squares_and_models_are_judged_with_predictions_cut():
    rng = np.random.default_rng(0)
    x, y, query, target = (
        rng.normal(size=(6, 3, 2)),
        rng.normal(size=(6, 3)),
        *rng.normal(size=(2, 6, 2)),
    )
    query[0] *= 100  # this prediction is cut
    batch = Prompt(*map(jnp.asarray, (x, y, query, target[:, 0])))
    steps = np.array([0.3, 0.9])
    weights = np.zeros((2, 2, 1, 1, 3, 3))
    weights[0, :, 0, 0, :2, :2], weights[1, :, 0, 0, 2, 2] = np.eye(2), -steps
    training = Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2)
    models = Model(Spec(Task(2, (3,)), Architecture(1), training), Params(*weights))

    def risk(rule):
        total = 0
        for b in range(6):
            most = 2 * np.abs(y[b]).max()
            total += (np.clip(rule(x[b], y[b]) @ query[b], -most, most) - target[b, 0]) ** 2
        return total / 6

    exact = risk(lambda x, y: np.linalg.lstsq(x, y, rcond=None)[0])
    np.testing.assert_allclose(compute.least_squares(batch), exact, rtol=1e-9)
    exact = [risk(lambda x, y, step=step: step * x.T @ y / 3) for step in steps]
    np.testing.assert_allclose(compute.risks_of(models, batch), exact, rtol=1e-9)
