"""Correlated covariates make linear attention's interference that of fewer demonstrations, while
label noise counts them all.

Gaussian covariates with E x_i x_jᵀ = c_|i-j| I, and an independent query. docs/theory, "Correlated
prompts".
"""

import numpy as np
import pytest

from draws import draw_regressions, lags, z_score
from lsa_lab.theory import correlated_prompts, learning_curves

N, D, C, NOISE = 24, 5, 0.7, 0.3


def test_drawn_prompts_at_their_best_scale_have_the_risk_of_the_curve():
    rng = np.random.default_rng(0)
    x, w, y = draw_regressions(rng, 40_000, N, D, NOISE, correlation=C)
    query = rng.normal(size=(len(x), D))
    products = np.einsum("bn,bnd,bd->b", y[:, :-1], x[:, :-1], query)
    targets = (w[:, -1] * query).sum(1)
    errors = ((products @ targets) / (products @ products) * products - targets) ** 2
    correlations = C ** np.arange(N), (C - 0.2) ** np.arange(N), [1.0]
    stated, *wrong = (correlated_prompts.additive(N, D, NOISE, c)[-1] for c in correlations)
    assert abs(z_score(errors - stated)) < 4
    assert min(abs(z_score(errors - other)) for other in wrong) > 4  # Control: another, and none


def sum_over_pairs(t, c):
    """1 - m²/q of Σ_{i≤t} y_i x_i by E (x_i·x_j)² = (dc)² + d(1 + c²) of every pair."""
    correlations = c[lags(t)]
    pairs = ((D * correlations) ** 2 + D * (1 + correlations**2)) / D
    np.fill_diagonal(pairs, D + 2 + D * NOISE)
    return 1 - t**2 / pairs.sum()


@pytest.mark.parametrize("correlation", [0.9 ** np.arange(9), np.array([1, -0.5, 0.2] + 6 * [0.0])])
def test_the_curve_is_the_sum_over_all_pairs(correlation):
    curve = correlated_prompts.additive(9, D, NOISE, correlation)
    expected = [1.0] + [sum_over_pairs(t, correlation) for t in range(1, 10)]
    np.testing.assert_allclose(curve, expected, rtol=1e-12)


def test_without_lags_it_is_the_curve_of_independent_prompts_and_with_noise_no_shorter_one():
    lag, plain = np.arange(40), learning_curves.additive(40, D, NOISE)
    independent = correlated_prompts.additive(40, D, NOISE, [1.0])
    np.testing.assert_allclose(independent, plain, rtol=1e-12)
    t_eff = 40 / (1 + 2 * ((1 - lag / 40) * C ** (2 * lag))[1:].sum())
    np.testing.assert_allclose(t_eff, 40 * (1 - C**2) / (1 + C**2), rtol=0.05)
    for noise_var, same in ((0.0, True), (NOISE, False)):
        shorter = 1 / (1 + t_eff / (D + 1 + D * noise_var))
        risk = correlated_prompts.additive(40, D, noise_var, C**lag)[-1]
        assert (abs(risk / shorter - 1) < 1e-12) == same
        assert risk < shorter + 1e-12
