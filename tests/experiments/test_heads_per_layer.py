"""`heads_per_layer`: every run has the risk of its own layer, and rows say what was put in."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import xarray as xr

from experiments.heads.heads_per_layer import claims, compute, ratios
from experiments.heads.heads_per_layer.config import FIRST, FULL, TIERS, counts, place_of, sizes
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from experiments.models.tasks import distribution
from lsa_lab.judging.statements import samples_of
from lsa_lab.models.linear_attention import Params
from lsa_lab.store import results

SPEC = Spec(
    Task(2, (4,), noise_std=0.5),
    Architecture(1),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2),
)


def test_variants_and_seeds_keep_their_places_and_predictions_are_cut():
    config = SimpleNamespace(seed=0, test_prompts=5)
    batch = compute.prompts_of(config, distribution(SPEC.task, 3))
    assert batch.x.shape == (5, 3, 2)
    steps = np.array([[0.1, 0.2], [0.4, 30.0], [0.8, 0.3]])  # [A, S]
    weights = np.zeros((2, 3, 2, 1, 1, 3, 3))
    weights[0, :, :, 0, 0, :2, :2], weights[1, :, :, 0, 0, 2, 2] = np.eye(2), -steps
    gates = np.ones((3, 2, 1, 1))
    runs = SimpleNamespace(every=Model(SPEC, Params(*weights), gates))
    risks = compute.risks_of(runs, [(batch, None)])[..., 0]
    assert risks.shape == (3, 2)
    for a, s in np.ndindex(3, 2):
        total = 0
        for x, y, query, target in zip(*map(np.asarray, vars(batch).values()), strict=True):
            predicted = steps[a, s] * sum(y[i] * (x[i] @ query) for i in range(3)) / 3
            most = 2 * max(abs(y))
            total += (min(max(predicted, -most), most) - target) ** 2 / 5
        np.testing.assert_allclose(risks[a, s], total, rtol=1e-9)


def test_prompts_of_another_length_are_others():
    config = SimpleNamespace(seed=0, test_prompts=2)
    short, long = (compute.prompts_of(config, distribution(SPEC.task, n)) for n in (3, 4))
    assert not np.isin(jax.tree.leaves(short)[0], jax.tree.leaves(long)[0]).any()


def samples(power, config):
    """Those of a Dataset in which risk is power(heads), whatever n is; twice that in layer 1."""
    arrays, spread = {}, np.array([1.0, 1.1, 0.9])
    for name, spec in sizes(config):
        kind, heads = place_of(spec)
        risk = power(heads) * (2 if kind == FIRST else 1) * spread[: spec.training.seeds]
        rows = np.repeat(risk[:, None], 5, axis=1)
        arrays[f"beyond_d.risk, {name}"] = (("seed", "beyond_d.shots"), rows)
    rules = ["ridge", "rotation-equivariant Bayes", "Lasso", "sparse Bayes"]
    arrays["beyond_d.rule_risk"] = (("beyond_d.rule", "beyond_d.shots"), np.full((4, 5), 0.5))
    coordinates = {"beyond_d.shots": list(config.beyond_d.shots), "beyond_d.rule": rules}
    attributes = {"config": json.dumps(results.plain(config))}
    dataset = xr.Dataset(arrays, coordinates, attributes)
    return samples_of(claims.size_rows(config), dataset)


def test_a_gain_up_to_d_is_told_from_a_power_of_heads():
    config = TIERS["laptop"]
    kinked = samples(lambda heads: 1 / min(heads, 8), config)
    straight = samples(lambda heads: 1 / heads, config)
    for kind in (FIRST, FULL):
        np.testing.assert_allclose(kinked[f"up_to_d_{kind}"], 0.5)
        np.testing.assert_allclose(kinked[f"beyond_d_{kind}"], 1)
        np.testing.assert_allclose(straight[f"beyond_d_{kind}"], 8 / 12)
    np.testing.assert_allclose(np.median(kinked["full_ridge"]), 1 / 4)


def test_seeds_that_diverged_or_that_a_row_lacks_are_left_out():
    left, right = ratios.paired(np.array([1.0, np.nan, 3.0, 4.0]), np.array([5.0, 6.0, 7.0]))
    assert left.tolist() == [1, 3]
    assert right.tolist() == [5, 7]


def test_the_numbers_of_heads_around_d_are_those_of_the_models():
    assert counts(TIERS["laptop"]) == {FIRST: (4, 8, 12), FULL: (4, 8, 12)}
    assert counts(TIERS["smoke"]) == {FIRST: (1, 2, 3), FULL: (1, 2, 3)}
