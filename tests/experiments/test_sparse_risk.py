"""`sparse_risk`: its draws, its doubled steps and its closed rules, beside loops."""

import dataclasses

import numpy as np
import pytest

from experiments.heads import sparse_rules
from experiments.heads.rule_names import RIDGE
from experiments.heads.sparse_risk import losses
from experiments.heads.sparse_risk.config import ORACLE, PLAIN, SQUARES, TIERS

NOISE_VAR = 0.4
PLACE = losses.Place(n=9, d=3, s=2, noise_var=NOISE_VAR)


def moments(x, y):
    """Of each prompt: XᵀX/n, Xᵀy/n and their squares, as columns."""
    n = x.shape[1]
    gram, r = np.einsum("bni,bnj->bij", x, x) / n, np.einsum("bni,bn->bi", x, y) / n
    columns = np.concatenate([gram.reshape(len(x), -1), r], axis=1)
    return np.concatenate([columns, columns**2], axis=1)


@pytest.mark.parametrize("n", [2, 9])  # less than e = 4, and more
def test_few_rows_have_the_moments_of_n_demonstrations(n):
    rng, size, place = np.random.default_rng(0), 40_000, PLACE._replace(n=n)
    batch, w = losses.draw(rng, place, size)
    x = rng.standard_normal((size, n, PLACE.d))
    y = np.einsum("bnd,bd->bn", x, w) + np.sqrt(NOISE_VAR) * rng.standard_normal((size, n))
    left, right = moments(batch.x, batch.y), moments(x, y)
    errors = np.hypot(left.std(0), right.std(0)) / np.sqrt(size)
    assert (np.abs(left.mean(0) - right.mean(0)) < 4.5 * errors).all()
    np.testing.assert_allclose((w**2).sum(1), 1)
    assert ((w != 0).sum(1) == PLACE.s).all()


def test_doubled_steps_are_steps_of_preprocessed_descent():
    batch, _ = losses.draw(np.random.default_rng(1), PLACE, 1)
    x, y = np.array(batch.x[0]), np.array(batch.y[0])
    r = x.T @ y / len(y)
    features, theta, path = x * r, np.zeros(PLACE.d), []
    size = len(y) / np.linalg.norm(features, ord=2) ** 2
    for _ in range(8):
        theta = theta + size * features.T @ (y - features @ theta) / len(y)
        path.append(r * theta)
    prompt = batch.replace(x=x, y=y)
    doubled = sparse_rules.preprocessed_path(prompt, 3)
    np.testing.assert_allclose(doubled, np.array(path)[[0, 1, 3, 7]], rtol=1e-3)


def test_rules_in_closed_form_lose_what_loops_say_in_every_run():
    config = dataclasses.replace(
        TIERS["smoke"].rates, runs=3, prompts=2, tuning=4, noise_var=NOISE_VAR
    )
    risks = losses.mean_losses(config, PLACE, np.random.default_rng(3), ())
    batch, truth = losses.draw(np.random.default_rng(3), PLACE, 6)
    exact = np.zeros((3, 3))  # least squares, ridge, least squares on the support
    for b, w in enumerate(truth):
        x, y, inside = batch.x[b], batch.y[b], w != 0
        squares = np.linalg.lstsq(x, y, rcond=None)[0]
        penalty = np.sqrt(len(y) * NOISE_VAR * PLACE.d / PLACE.n)
        rows, zeros = np.concatenate([x, penalty * np.eye(3)]), np.zeros(3)
        ridge = np.linalg.lstsq(rows, np.append(y, zeros), rcond=None)[0]
        known = np.zeros(3)
        known[inside] = np.linalg.lstsq(x[:, inside], y, rcond=None)[0]
        for i, estimate in enumerate((squares, ridge, known)):
            exact[i, b // 2] += ((estimate - w) ** 2).sum() / 2
    rows = [PLAIN.index(rule) for rule in (SQUARES, RIDGE, ORACLE)]
    np.testing.assert_allclose(risks[rows], exact, rtol=1e-8)
