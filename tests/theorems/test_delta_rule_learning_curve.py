"""The delta rule with its best steps, and linear attention, learn by closed curves.

Gaussian covariates, E wwᵀ = I/d, independent noise. docs/theory, "Learning curve of linear
attention", "Learning curve of the delta rule".
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import lambertw

from draws import jit_numpy
from lsa_lab.theory import learning_curves
from population import gauss_hermite, linear_risk, token_states

N, D = 3, 2
NOISE = np.array([0.3, 1.2, 0.1])
delta_rule = jit_numpy(learning_curves.delta_rule, static_argnums=(0, 1))
additive = jit_numpy(learning_curves.additive, static_argnums=(0, 1))


@jit_numpy
def risk(steps, noise_vars):  # of the layer after all tokens -> []
    points, masses = gauss_hermite([3] * (N * D))  # degree 4 in every coordinate
    raw, states = jnp.log(jnp.expm1(steps))[:, None], token_states("lms", D, 1)

    def answer(x, y):
        rows = jnp.concatenate([x, raw, y[:, None]], 1)
        return states(jnp.pad(rows, ((0, 1), (0, 0))))[N - 1, :, 0]

    return linear_risk(answer, points.reshape(-1, N, D), masses, noise_vars)


def best_steps(noise_vars):
    before = delta_rule(N, D, noise_vars)[:-1]
    return before / ((D + 2) * before + D * noise_vars)


@pytest.mark.parametrize("noise_vars", [NOISE, np.full(N, 0.2), np.full(N, 1e-9)])
def test_the_delta_rule_follows_its_recursion(noise_vars):
    stated, steps = delta_rule(N, D, noise_vars)[-1], best_steps(noise_vars)
    np.testing.assert_allclose(risk(steps, noise_vars), stated, rtol=1e-9)


def test_no_other_steps_learn_more_and_control_with_other_noise_the_recursion_is_another():
    best, rng = best_steps(NOISE), np.random.default_rng(0)
    least = risk(best, NOISE)
    assert all(risk(best * rng.uniform(0.7, 1.4, N), NOISE) > least for _ in range(8))
    assert abs(risk(best, 2 * NOISE) / least - 1) > 1e-2


def test_linear_attention_with_its_best_scale_follows_its_curve():
    """Σ_i y_i x_i: E of its product with w is t, of its square t (d + 2 + dσ²) + t (t - 1)."""
    for d in (D, 1):
        t = np.arange(1, 6)
        square = t * (d + 2 + d * 0.2) + t * (t - 1)
        np.testing.assert_allclose(additive(5, d, 0.2)[1:], 1 - t**2 / square, rtol=1e-12)


def test_one_token_is_one_for_both_and_later_the_delta_rule_is_ahead():
    linear, delta = (curve(9, 4, 0.3) for curve in (additive, delta_rule))
    np.testing.assert_allclose(linear[:2], delta[:2], rtol=1e-12)
    assert (delta[2:] < linear[2:]).all()


def test_in_the_limit_the_curve_is_that_of_lambert():
    """r = σ²/W(σ² e^{σ² + α}), and e^{-α} without noise."""
    for alpha, noise_var in ((2.0, 0.5), (0.1, 50.0), (6.0, 1e-3)):
        limit = noise_var / lambertw(noise_var * np.exp(noise_var + alpha)).real
        stated = delta_rule(int(alpha * 4000), 4000, noise_var)[-1]
        np.testing.assert_allclose(stated, limit, rtol=5e-3)
    np.testing.assert_allclose(delta_rule(8000, 4000, 0.0)[-1], np.exp(-2), rtol=5e-3)
