"""The lasso is what its optimality conditions say it is (Tibshirani 1996).

With g = Xᵀ(y - Xw)/n: g_j = λ sign w_j on the support and |g_j| ≤ λ off it; hence w = 0 if and only
if λ ≥ |r|_∞, r = Xᵀy/n, and a soft threshold of r where XᵀX = nI. The gap certificate is the
objective minus its dual at a feasible point, and 0 only at the minimiser. docs/theory, "The Lasso".
"""

import jax
import numpy as np
import pytest

from draws import jit_numpy, seed_and
from lsa_lab.estimators import lasso
from lsa_lab.prompts import Prompt

shapes = pytest.mark.parametrize(("n", "d"), [(30, 4), (5, 12), (1, 1)])
solve = jit_numpy(lasso)


def draw(seed, n, d):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return Prompt(x, x[:, 0] - x[:, -1] + rng.normal(size=n), rng.normal(size=d), np.zeros(()))


def slope(prompt, weights):
    return (prompt.y - prompt.x @ weights) @ prompt.x / len(prompt.y)


def certify(prompt, weights, penalty):
    """(1 - s)² |ρ|²/2n + Σ_j (λ|w_j| - s w_j g_j), ρ = y - Xw, s = min(1, λ/|g|_∞)."""
    g, residual = slope(prompt, weights), prompt.y - prompt.x @ weights
    s = min(1.0, penalty / np.max(np.abs(g)))
    slack = penalty * np.abs(weights) - s * weights * g
    return (1 - s) ** 2 * residual @ residual / (2 * len(residual)) + slack.sum()


def violation(prompt, weights, penalty):
    inside, signs = slope(prompt, weights), np.sign(weights)
    return np.max(np.where(signs == 0, np.abs(inside) - penalty, np.abs(inside - penalty * signs)))


@shapes
@seed_and(share=(1e-3, 0.99), penalty=(0.01, 2.0))
def test_the_slope_is_as_stated_and_the_certificate_is_the_duality_gap(n, d, seed, share, penalty):
    """The slope is the penalty on the support, and below it elsewhere."""
    prompt = draw(seed, n, d)
    largest = np.max(np.abs(slope(prompt, np.zeros(d))))
    weights = solve(prompt, share * largest)
    assert violation(prompt, weights, share * largest) < 1e-10
    assert certify(prompt, weights, share * largest) < 1e-12 * np.sum(prompt.y**2) / n
    assert weights.any()
    assert not solve(prompt, largest * (1 + 1e-9)).any()
    x, y, weights = prompt.x, prompt.y, prompt.x_query  # any weights have a gap
    primal = np.sum((y - x @ weights) ** 2) / (2 * n) + penalty * np.sum(np.abs(weights))
    dual_point = (y - x @ weights) / n
    dual_point *= min(1.0, penalty / np.max(np.abs(x.T @ dual_point)))
    dual = y @ dual_point - n * np.sum(dual_point**2) / 2
    assert abs(certify(prompt, weights, penalty) - (primal - dual)) < 1e-10 * primal


@seed_and(share=(0.01, 1.5))
def test_an_orthogonal_design_thresholds_each_coordinate_softly(seed, share):
    prompt = draw(seed, 30, 4)
    prompt = prompt.replace(x=30**0.5 * np.linalg.qr(prompt.x)[0])
    r = slope(prompt, np.zeros(4))
    penalty = share * np.max(np.abs(r))
    soft = np.sign(r) * np.maximum(np.abs(r) - penalty, 0.0)
    np.testing.assert_allclose(solve(prompt, penalty), soft, atol=1e-10)


def test_few_labels_among_many_columns_and_nearly_collinear_ones_are_solved_to_rounding():
    for seed in range(20):
        prompt = draw(seed, 5, 12)
        weights = solve(prompt, 1e-6)
        assert certify(prompt, weights, 1e-6) < 1e-14 * np.sum(prompt.y**2)
        assert np.count_nonzero(weights) <= 5
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 1)) + 0.1 * rng.normal(size=(20, 40))
    prompt = Prompt(x, rng.normal(size=20), x[0], np.zeros(()))
    gap = certify(prompt, solve(prompt, 0.01), 0.01)
    assert gap < 1e-13 * np.sum(prompt.y**2)  # after ten rounds .2 are left


def test_the_derivative_is_the_slope_of_the_path():
    prompt, step = draw(0, 30, 4), 1e-3
    penalty = 0.5 * np.max(np.abs(slope(prompt, np.zeros(4))))
    before, after = (solve(prompt, penalty + sign * step) for sign in (-1, 1))
    found = jit_numpy(jax.jacobian(lambda penalty: lasso(prompt, penalty)))(penalty)
    assert 0 < np.count_nonzero(found) < 4  # the path is linear between changes of its support
    np.testing.assert_allclose(found, (after - before) / (2 * step), atol=1e-10)


def test_control_the_solution_for_another_penalty_breaks_the_conditions():
    prompt = draw(0, 5, 12)
    weights = solve(prompt, 0.11)
    assert violation(prompt, weights, 0.1) > 1e-3
    assert certify(prompt, weights, 0.1) > 1e-4
