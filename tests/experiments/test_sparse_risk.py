"""Risks of sparse regression: rows that stand for n demonstrations, and rules beside loops."""

import jax
import numpy as np
import pytest
import xarray as xr

from experiments.heads import sparse_risk
from experiments.heads.sparse_risk import PREPROCESSED, RIDGE, Config, Place
from lsa_lab.prompts import Prompt

PLACE = Place(n=9, d=3, s=2, law="flat", noise_var=0.4)


def list_moments(x, y):
    """Return XᵀX/n, Xᵀy/n and their squares of each prompt, as columns."""
    n = x.shape[1]
    gram, r = np.einsum("bni,bnj->bij", x, x) / n, np.einsum("bni,bn->bi", x, y) / n
    columns = np.concatenate([gram.reshape(len(x), -1), r], axis=1)
    return np.concatenate([columns, columns**2], axis=1)


def moment_errors(n, stands_for):
    """Return standard errors between the moments of n demonstrations and of rows for a number."""
    rng, size = np.random.default_rng(0), 40_000
    batch, w = sparse_risk.draw(rng, PLACE._replace(n=stands_for), size)
    np.testing.assert_allclose((w**2).sum(1), 1)
    assert ((w != 0).sum(1) == PLACE.s).all()
    x = rng.standard_normal((size, n, PLACE.d))
    noise = PLACE.noise_var**0.5 * rng.standard_normal((size, n))
    y = np.einsum("bnd,bd->bn", x, w) + noise
    left, right = list_moments(batch.x, batch.y), list_moments(x, y)
    errors = np.hypot(left.std(0), right.std(0)) / np.sqrt(size)
    return np.abs(left.mean(0) - right.mean(0)) / errors


@pytest.mark.parametrize("n", [2, 9])  # less than e = 4, and more
def test_few_rows_have_the_moments_of_n_demonstrations(n):
    assert moment_errors(n, n).max() < 4.5


def test_control_rows_for_one_demonstration_more_do_not():
    assert moment_errors(9, 10).max() > 9


def draw_one():
    batch, w = sparse_risk.draw(np.random.default_rng(1), PLACE, 1)
    x, y = np.array(batch.x[0]), np.array(batch.y[0])
    return Prompt(x, y, np.zeros(3), np.zeros(())), w[0]


def test_the_path_is_that_of_steps_one_by_one():
    prompt, _ = draw_one()
    x, y = prompt.x, prompt.y
    r, theta, path = x.T @ y / len(y), np.zeros(3), []
    features = x * r
    size = len(y) / np.linalg.norm(features, ord=2) ** 2
    for _ in range(8):
        theta = theta + size * features.T @ (y - features @ theta) / len(y)
        path.append(r * theta)
    measured = jax.jit(sparse_risk.preprocessed_path, static_argnums=1)(prompt, 3)
    np.testing.assert_allclose(measured, np.array(path)[[0, 1, 3, 7]], rtol=1e-9)


def test_ridge_is_least_squares_on_more_rows_and_runs_are_means_over_their_prompts():
    config = Config(prompts=2, tuning=4, runs=3, doublings=2)
    risks = sparse_risk.measure_place(config, [PLACE], 0)
    assert risks.shape == (3, len(sparse_risk.RULES))
    batch, truth = sparse_risk.draw(np.random.default_rng([config.seed, 0]), PLACE, 6)
    expected = np.zeros(3)
    for b, w in enumerate(truth):
        root = np.sqrt(4 * PLACE.noise_var * PLACE.d / PLACE.n)  # of e times the penalty
        rows = np.concatenate([batch.x[b], root * np.eye(3)])
        ridge = np.linalg.lstsq(rows, np.append(batch.y[b], np.zeros(3)), rcond=None)[0]
        expected[b // 2] += ((ridge - w) ** 2).sum() / 2
    np.testing.assert_allclose(risks[:, sparse_risk.RULES.index(RIDGE)], expected, rtol=1e-9)


def test_slopes_are_those_of_the_laws_and_of_no_other():
    data, coordinates = {}, {"rule": [PREPROCESSED, RIDGE]}
    for axis, power in zip("nsd", ((-1, -1), (1, 0), (0, 1)), strict=True):
        values = np.array([1.0, 2.0, 4.0])
        risk = np.stack([7 * values**exponent for exponent in power], axis=1)
        name, data_axes = f"rate_{axis}", (f"long_{axis}", "rule", "run")
        data[name] = (data_axes, np.repeat(risk[..., None], 2, axis=2))
        coordinates[data_axes[0]] = values
    result = xr.Dataset(data, coordinates)
    for rule in (PREPROCESSED, RIDGE):
        for axis in "nsd":
            slopes = sparse_risk.excess_slope(result, rule, axis)
            np.testing.assert_allclose(slopes, [0, 0], atol=1e-12)
    swapped = result.assign_coords(rule=[RIDGE, PREPROCESSED])
    assert np.abs(sparse_risk.excess_slope(swapped, RIDGE, "d")).min() > 0.9
