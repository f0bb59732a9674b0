"""The simulation of `finite_pretraining` is the model that it speaks of: prompts drawn, layers
fitted and their risks measured in the plain way give the same numbers."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.one_layer.finite_pretraining import compute
from experiments.one_layer.finite_pretraining.config import TIERS
from lsa_lab.theory.asymptotics import ridgeless_risk

D, N, NOISE_VAR = 4, 6, 0.3


def prompts_of(rng, w):
    """x_query, (h, s) and y_query of prompts with the tasks w [B, d], from their demonstrations."""
    x = rng.standard_normal((len(w), N + 1, D)) / np.sqrt(D)
    noise = np.sqrt(NOISE_VAR) * rng.standard_normal((len(w), N + 1))
    y = np.einsum("bnd,bd->bn", x, w) + noise
    h = D / N * np.einsum("bn,bnd->bd", y[:, :N], x[:, :N])
    return x[:, N], np.concatenate([h, (y[:, :N] ** 2).mean(1, keepdims=True)], axis=1), y[:, N]


def moments(x_query, read, y_query):
    """Means of the products of all features with each other and of the target with all of them."""
    columns = np.concatenate([read, read**2, y_query[:, None] * x_query * read[:, :-1]], axis=1)
    products = columns[:, :, None] * columns[:, None]
    return products.mean(0), products.std(0) / np.sqrt(len(products))


def test_features_have_the_law_of_those_of_drawn_prompts():
    rng = np.random.default_rng(0)
    tasks = rng.standard_normal((3, D))
    direct = prompts_of(rng, tasks[rng.integers(3, size=200_000)])
    features = compute.features(jax.random.key(0), jnp.asarray(tasks), N, 3, NOISE_VAR, 200_000)
    (left, left_error), (right, right_error) = moments(*direct), moments(*map(np.asarray, features))
    assert (np.abs(left - right) < 5 * np.hypot(left_error, right_error)).all()


def risks_of(layer, w, rng):
    x_query, read, y = prompts_of(rng, w)
    errors = (y - np.einsum("bi,ij,bj->b", x_query, layer, read)) ** 2
    return errors.mean(), errors.std() / np.sqrt(len(errors))


def test_risks_of_a_layer_are_its_mean_squared_errors():
    rng = np.random.default_rng(1)
    tasks, layer = rng.standard_normal((5, D)), 0.3 * rng.standard_normal((D, D + 1))
    layer += 0.7 * np.eye(D, D + 1)  # as a trained one: the terms with its trace are not small
    used = jnp.arange(5) < 3
    exact = compute.risks_of(jnp.asarray(layer), jnp.asarray(tasks), used, N, NOISE_VAR)
    new = risks_of(layer, rng.standard_normal((400_000, D)), rng)
    old = risks_of(layer, tasks[rng.integers(3, size=400_000)], rng)
    for risk, (mean, error) in zip(exact, (new, old), strict=True):
        assert abs(float(risk) - mean) < 4 * error
        assert error < 0.01 * mean


@pytest.mark.parametrize("counts", [(3, 8), (6, 25, 40)])
def test_fits_are_those_of_least_squares_of_least_norm(counts):
    rng = np.random.default_rng(2)
    x_query, read, y_query = prompts_of(rng, rng.standard_normal((counts[-1], D)))
    layers = compute.fits(tuple(map(jnp.asarray, (x_query, read, y_query))), counts)
    for count, layer in zip(counts, layers, strict=True):
        rows = np.einsum("bi,bj->bij", x_query, read)[:count].reshape(count, -1)
        best = np.linalg.lstsq(rows, y_query[:count], rcond=None)[0]
        np.testing.assert_allclose(np.ravel(layer), best, rtol=1e-6, atol=1e-8)


def test_sizes_follow_the_proportions_and_fits_of_a_run_are_averaged(monkeypatch):
    calls = []

    def risks(key, n, k, noise_var, *, counts, most_tasks, d):
        calls.append((n, k, noise_var, counts, most_tasks, d))
        return [[len(calls), 10 * len(calls)] for _ in counts]

    monkeypatch.setattr(compute, "fitted_risks", risks)
    config = SimpleNamespace(
        runs=2, taus=(0.25, 1.5, 4.0), kappas=(0.5, 2.0), sizes=(4, 8), noise_var=0.3
    )
    measured = compute.simulate(config, jax.random.key(0), 4, 1.5, 0.5)
    assert set(calls) == {(6.0, 2, 0.3, (4, 24, 64), 8, 4)}
    assert len(calls) == 2 * 4  # a small layer is fitted (8/4)² times in a run
    assert measured.shape == (2, 3, 2)
    np.testing.assert_allclose(measured[:, 1], [[2.5, 25], [6.5, 65]])


def test_closed_forms_stand_at_their_places(monkeypatch):
    config = TIERS["smoke"]
    monkeypatch.setattr(
        compute,
        "simulate",
        lambda c, key, d, alpha, kappa: np.broadcast_to(
            d + 10 * alpha + 100 * kappa, (c.runs, len(c.taus), 2)
        ),
    )
    data = compute.compute(config)
    place = dict(d=8, alpha=config.alphas[-1], kappa=0.5)
    np.testing.assert_allclose(data.measured.sel(place), 8 + 10 * config.alphas[-1] + 50)
    exact = ridgeless_risk(place["alpha"], 0.5, 4.0, config.noise_var)
    place = {"alpha": place["alpha"], "kappa": 0.5, "tau": 4.0}
    np.testing.assert_allclose(data.closed_form.sel(place), exact, rtol=1e-12)
