"""The delta rule with its best steps, and linear attention, learn by closed curves.

docs/theory, "Learning curve of linear attention", "Learning curve of the delta rule". Sides: the
recurrent layer on every point of a Gauss-Hermite rule, with every w and every unit of noise; the
recursions. Hypotheses: Gaussian covariates, E wwᵀ = I/d, independent noise.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.models import recurrent
from lsa_lab.theory import learning_curves
from population import gauss_hermite

N, D = 3, 2
NOISE = np.array([0.3, 1.2, 0.1])
# Tokens [x, raw step, y]: the head keys x, values y, and writes minus what it reads.
CONFIG = recurrent.Config("lms", D + 2, key_width=D, value_width=1)
PARAMS = recurrent.Params(
    w_q=jnp.eye(D, D + 2)[None, None],
    w_k=jnp.eye(D, D + 2)[None, None],
    w_v=jnp.eye(D + 2)[None, None, -1:],
    w_o=-jnp.eye(D + 2)[None, None, :, -1:],
    w_step=jnp.eye(D + 2)[None, None, D : D + 1],
    b_step=jnp.zeros((1, 1, 1)),
)


delta_rule = jit_numpy(learning_curves.delta_rule, static_argnums=(0, 1))
additive = jit_numpy(learning_curves.additive, static_argnums=(0, 1))
limit = jit_numpy(learning_curves.delta_rule_limit)


@jit_numpy
def risk(steps, noise_vars):  # of the layer after all tokens -> []
    points, masses = gauss_hermite([3] * (N * D))  # degree 4 in every coordinate
    raw = jnp.log(jnp.expm1(steps))

    def answer(x, y):  # [D]: to each unit query
        rows = jnp.concatenate([x, raw[:, None], y[:, None]], 1)

        def of_query(query):
            last = jnp.concatenate([query, jnp.zeros(2)])
            return recurrent.predict(PARAMS, jnp.concatenate([rows, last[None]]), CONFIG)

        return jax.vmap(of_query)(jnp.eye(D))

    def errors(x):
        signal = jax.vmap(lambda w: ((answer(x, x @ w) - w) ** 2).sum())(jnp.eye(D)).mean()
        noise = jax.vmap(lambda unit: (answer(x, unit) ** 2).sum())(jnp.eye(N))
        return signal + noise_vars @ noise

    return masses @ jax.lax.map(errors, points.reshape(-1, N, D), batch_size=81)


def best_steps(noise_vars):
    before = delta_rule(N, D, noise_vars)[:-1]
    return before / ((D + 2) * before + D * noise_vars)


@pytest.mark.parametrize("noise_vars", [NOISE, np.full(N, 0.2), np.full(N, 1e-9)])
def test_the_delta_rule_follows_its_recursion(noise_vars):
    stated = delta_rule(N, D, noise_vars)[-1]
    np.testing.assert_allclose(risk(best_steps(noise_vars), noise_vars), stated, rtol=1e-9)


def test_no_other_steps_learn_more():
    best, rng = best_steps(NOISE), np.random.default_rng(0)
    least = risk(best, NOISE)
    for _ in range(8):
        assert risk(best * rng.uniform(0.7, 1.4, N), NOISE) > least


def test_control_with_other_noise_the_recursion_is_another():
    stated = delta_rule(N, D, NOISE)[-1]
    assert abs(risk(best_steps(NOISE), 2 * NOISE) / stated - 1) > 1e-2


def test_linear_attention_with_its_best_scale_follows_its_curve():
    """Σ_i y_i x_i: E of its product with w is t, of its square t (d + 2 + dσ²) + t (t - 1)."""
    for t, r in enumerate(additive(N, D, 0.2)):
        square = t * (D + 2 + D * 0.2) + t * (t - 1)
        np.testing.assert_allclose(r, 1 - (t**2 / square if t else 0), rtol=1e-12)


def test_one_token_is_one_for_both_and_later_the_delta_rule_is_ahead():
    linear, delta = (curve(9, 4, 0.3) for curve in (additive, delta_rule))
    np.testing.assert_allclose(linear[:2], delta[:2], rtol=1e-12)
    assert (delta[2:] < linear[2:]).all()


def test_in_the_limit_the_curve_is_that_of_lambert():
    """r = σ²/W(σ² e^{σ² + α}): σ²/r + log(1/r) = σ² + α."""
    for alpha, noise_var in ((2.0, 0.5), (0.1, 50.0), (6.0, 1e-3)):
        r = limit(alpha, noise_var)
        np.testing.assert_allclose(noise_var / r - np.log(r), noise_var + alpha, rtol=1e-12)
        large = delta_rule(int(alpha * 4000), 4000, noise_var)[-1]
        np.testing.assert_allclose(r, large, rtol=5e-3)
    np.testing.assert_allclose(limit(2.0, 0.0), np.exp(-2), rtol=1e-12)
