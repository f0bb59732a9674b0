"""Risks of sparse regression: rows that stand for n demonstrations, and rules beside loops."""

import jax
import numpy as np

from draws import descend
from experiments.heads import sparse_risk
from experiments.heads.sparse_risk import RIDGE, Config, Place
from lsa_lab.prompts import Prompt

PLACE = Place(n=9, d=3, s=2, law="flat", noise_var=0.4)


def list_moments(x, y):
    """Return XᵀX/n, Xᵀy/n and their squares of each prompt, as columns."""
    rows = np.concatenate([x, y[..., None]], axis=2)
    columns = (x.swapaxes(1, 2) @ rows).reshape(len(x), -1) / x.shape[1]
    return np.concatenate([columns, columns**2], axis=1)


def moment_errors(n, stands_for):
    """Return standard errors between the moments of n demonstrations and of rows for a number."""
    rng, size = np.random.default_rng(0), 40_000
    batch, w = sparse_risk.draw(rng, PLACE._replace(n=stands_for), size)
    np.testing.assert_allclose((w**2).sum(1), 1)
    assert ((w != 0).sum(1) == PLACE.s).all()
    x = rng.standard_normal((size, n, PLACE.d))
    noise = PLACE.noise_var**0.5 * rng.standard_normal((size, n))
    left, right = (
        list_moments(batch.x, batch.y),
        list_moments(x, (x @ w[..., None])[..., 0] + noise),
    )
    errors = np.hypot(left.std(0), right.std(0)) / np.sqrt(size)
    return np.abs(left.mean(0) - right.mean(0)) / errors


def test_few_rows_have_the_moments_of_n_demonstrations():
    assert moment_errors(2, 2).max() < 4.5  # less than e = 4
    assert moment_errors(9, 9).max() < 4.5
    assert moment_errors(9, 10).max() > 9  # control: rows for one demonstration more


def test_the_path_is_that_of_steps_one_by_one():
    batch, _ = sparse_risk.draw(np.random.default_rng(1), PLACE, 1)
    x, y = np.array(batch.x[0]), np.array(batch.y[0])
    r = x.T @ y / len(y)
    size = (len(y) / np.linalg.norm(x * r, ord=2)) ** 2 / len(y)
    path = [r * descend(x * r, y, [size] * steps) for steps in (1, 2, 4, 8)]
    prompt = Prompt(x, y, np.zeros(3), np.zeros(()))
    measured = jax.jit(sparse_risk.preprocessed_path, static_argnums=1)(prompt, 3)
    np.testing.assert_allclose(measured, path, rtol=1e-9)


def test_ridge_is_least_squares_on_more_rows_and_runs_are_means_over_their_prompts():
    config = Config(prompts=2, tuning=4, runs=3, doublings=2)
    risks = sparse_risk.measure_place(config, [PLACE], 0)
    assert risks.shape == (3, len(sparse_risk.RULES))
    batch, truth = sparse_risk.draw(np.random.default_rng([config.seed, 0]), PLACE, 6)
    root = np.sqrt(4 * PLACE.noise_var * PLACE.d / PLACE.n)  # of e times the penalty
    expected = np.zeros(3)
    for b, w in enumerate(truth):
        rows = np.concatenate([batch.x[b], root * np.eye(3)])
        ridge = np.linalg.lstsq(rows, np.append(batch.y[b], np.zeros(3)), rcond=None)[0]
        expected[b // 2] += ((ridge - w) ** 2).sum() / 2
    np.testing.assert_allclose(risks[:, sparse_risk.RULES.index(RIDGE)], expected, rtol=1e-9)
