"""Correlated covariates make linear attention's interference that of fewer demonstrations, while
label noise counts them all. Where noise is autoregressive, a mesa layer of differenced tokens is
the Bayes rule.

Gaussian covariates with E x_i x_jᵀ = c_|i-j| I, and an independent query; stationary noise of
correlation p^|i - j|, w ~ N(0, I/d). docs/theory, "Correlated prompts", "Correlated noise".
"""

import numpy as np
import pytest

from draws import draw_regressions, jit_numpy, lags, regressive_root, seeds, z_score
from lsa_lab.models import recurrent
from lsa_lab.theory import correlated_prompts, learning_curves
from population import mesa_layer

N, D, C, P, NOISE = 24, 5, 0.7, 0.6, 0.3


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


MESA, CONFIG = mesa_layer(D, D * NOISE)
answer = jit_numpy(lambda rows: recurrent.predict(MESA, rows, CONFIG))


def difference(rows, p=P):  # [..., n, d], a convolution of width 2, the first row as it is
    later = (rows[..., 1:, :] - p * rows[..., :-1, :]) / np.sqrt(1 - p**2)
    return np.concatenate([rows[..., :1, :], later], -2)


def draw_noisy(rng, count, n, c=0.0):  # rows [B, n, d+1] and w [B, d]
    x, w, y = draw_regressions(rng, count, n - 1, D, 0.0, correlation=c)
    y += NOISE**0.5 * rng.normal(size=(count, n)) @ regressive_root(P, n).T
    return np.concatenate([x, y[..., None]], 2), w[:, 0]


def predictions(seed, p):  # of the layer, and the posterior mean's
    rng = np.random.default_rng(seed)
    ((rows,), _), query = draw_noisy(rng, 1, 9), rng.normal(size=D)
    weighted = rows[:, :D].T @ np.linalg.inv(NOISE * P ** lags(9)) @ rows
    predicted = answer(np.vstack([difference(rows, p), np.append(query, 0.0)]))
    return predicted, query @ np.linalg.solve(weighted[:, :D] + D * np.eye(D), weighted[:, D])


@seeds
def test_a_mesa_layer_of_differences_is_the_posterior_mean(seed):
    np.testing.assert_allclose(*predictions(seed, P), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("p", [0.0, 0.5, -P])
def test_control_tokens_as_they_are_or_other_differences_are_not(p):
    errors = [abs(np.subtract(*predictions(seed, p))) for seed in range(9)]
    assert np.median(errors) > 1e-3


def ratio_of_risks(c):
    return (1 - P**2) * (1 - P * c) / ((1 + P**2 - 2 * P * c) * (1 + P * c))


@pytest.mark.parametrize("c", [P, -P])
def test_on_long_prompts_the_ratio_of_risks_is_as_stated(c):
    """|ŵ - w|² of least squares on differences and on tokens, 300 in each of 4000 prompts."""
    rows, w = draw_noisy(np.random.default_rng(0), 4000, 300, c)
    errors = []
    for tokens in (difference(rows), rows):
        moment = tokens.swapaxes(1, 2) @ tokens
        fitted = np.linalg.solve(moment[:, :D, :D], moment[:, :D, D:])[..., 0]
        errors.append(((fitted - w) ** 2).sum(1))
    assert abs(z_score(errors[0] - ratio_of_risks(c) * errors[1])) < 4
    if c < 0:  # Control: the ratio of independent covariates
        assert z_score(errors[0] - ratio_of_risks(0.0) * errors[1]) > 10
