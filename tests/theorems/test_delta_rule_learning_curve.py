"""The delta rule with its best steps, and linear attention, learn by closed curves; steps that
depend on |x_t|² learn by a recursion over χ²_d, and start as the Bayes rule. Least mean squares
learns each eigenvector of any covariance by one closed recursion.

Gaussian covariates, E wwᵀ = I/d, independent noise. docs/theory, "Learning curve of linear
attention", "Learning curve of the delta rule", "A step that sees the key", "Any covariance".
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import lambertw

from draws import jit_numpy, z_score
from lsa_lab.theory import learning_curves
from population import constant_layer, gauss_hermite, linear_risk, recurrent_answer, token_states

N, D = 3, 2
NOISE = np.array([0.3, 1.2, 0.1])
delta_rule, additive, implicit = (
    jit_numpy(curve, static_argnums=(0, 1))
    for curve in (learning_curves.delta_rule, learning_curves.additive, learning_curves.implicit)
)


@jit_numpy
def risk(steps, noise_vars):  # of the layer after all tokens -> []
    points, masses = gauss_hermite([3] * (N * D))  # degree 4 in every coordinate
    raw, states = jnp.log(jnp.expm1(steps))[:, None], token_states("lms", D, 1)

    def answer(x, y):
        rows = jnp.concatenate([x, raw, y[:, None]], 1)
        return states(jnp.pad(rows, ((0, 1), (0, 0))))[N - 1, :, 0]

    return linear_risk(answer, points.reshape(-1, N, D), masses, noise_vars)


def test_the_delta_rule_follows_its_recursion_and_no_other_steps_learn_more():
    rng = np.random.default_rng(0)
    for noise_vars in (np.full(N, 0.2), np.full(N, 1e-9), NOISE):
        before = delta_rule(N, D, noise_vars)
        best = before[:-1] / ((D + 2) * before[:-1] + D * noise_vars)
        least = risk(best, noise_vars)
        np.testing.assert_allclose(least, before[-1], rtol=1e-9)
    assert all(risk(best * rng.uniform(0.7, 1.4, N), NOISE) > least for _ in range(8))
    assert abs(risk(best, 2 * NOISE) / least - 1) > 1e-2  # Control: other noise


def test_linear_attention_with_its_best_scale_follows_its_curve_and_is_behind():
    """Σ_i y_i x_i: E of its product with w is t, of its square t (d + 2 + dσ²) + t (t - 1)."""
    for d in (4, 1):
        t = np.arange(1, 10)
        square = t * (d + 2 + d * 0.3) + t * (t - 1)
        linear, delta = (curve(9, d, 0.3) for curve in (additive, delta_rule))
        np.testing.assert_allclose(linear[1:], 1 - t**2 / square, rtol=1e-12)
        np.testing.assert_allclose(linear[:2], delta[:2], rtol=1e-12)  # one token is one for both
        assert (delta[2:] < linear[2:]).all()


def test_in_the_limit_the_curve_is_that_of_lambert():
    """r = σ²/W(σ² e^{σ² + α}), and e^{-α} without noise."""
    for alpha, noise_var in ((2.0, 0.5), (0.1, 50.0), (6.0, 1e-3)):
        limit = noise_var / lambertw(noise_var * np.exp(noise_var + alpha)).real
        stated = delta_rule(int(alpha * 4000), 4000, noise_var)[-1]
        np.testing.assert_allclose(stated, limit, rtol=5e-3)
    np.testing.assert_allclose(delta_rule(8000, 4000, 0.0)[-1], np.exp(-2), rtol=5e-3)


def normal(rng, shape):
    return rng.normal(size=shape)


def simulate(steps, spectrum, noise_var, draw=normal, prompts=20_000):  # [n+1, B]
    """(ŵ - w)ᵀΛ(ŵ - w) after steps that are functions of |x|²; x is the root of Λ times a draw."""
    rng = np.random.default_rng(0)
    error = rng.normal(size=(prompts, len(spectrum))) / len(spectrum) ** 0.5
    squares = [error**2 @ spectrum]
    for step in steps:
        x = draw(rng, error.shape) * np.sqrt(spectrum)
        surprise = (error * x).sum(1) + noise_var**0.5 * rng.normal(size=prompts)
        error = error - (step((x**2).sum(1)) * surprise)[:, None] * x
        squares.append(error**2 @ spectrum)
    return squares


def largest_score(squares, curve):
    return max(abs(z_score(s - r)) for s, r in zip(squares, curve, strict=True))


@pytest.mark.parametrize("case", [(8, 4, 0.1), (6, 3, 1.0), (5, 1, 0.3)])
def test_a_step_that_sees_the_key_follows_its_recursion(case):
    """After one demonstration it is the Bayes rule, and then above it."""
    (_, d, noise_var), curve, bayes = case, implicit(*case), learning_curves.ridge(*case)
    steps = [lambda square, r=r: r / (square * r + d * noise_var) for r in curve[:-1]]
    assert largest_score(simulate(steps, np.ones(d), noise_var), curve) < 4
    if d == 4:  # Control: a step that does not see it
        blind = [lambda _, step=step: step(d + 2) for step in steps]
        assert abs(z_score(simulate(blind, np.ones(d), noise_var)[-1] - curve[-1])) > 10
    np.testing.assert_allclose(curve[:2], bayes[:2], rtol=1e-9)
    assert (curve[2:] > bayes[2:]).all()
    assert (curve[1:] < delta_rule(*case)[1:]).all()


NOISE_VAR, VALUES, TURN = 0.4, np.array([1.5, 0.3]), np.array([[0.8, 0.6], [-0.6, 0.8]])
ROOT = TURN * np.sqrt(VALUES)


def lms(n, values, step, gate=1.0, scale=1.0):  # [n+1]
    """λ·(q - 2p + 1/d), p and q the diagonals of E ŵwᵀ and E ŵŵᵀ in the basis of Λ."""

    def fourth(v):  # the diagonal of E xxᵀ diag(v) xxᵀ
        return 2 * values**2 * v + values * (values @ v)

    d, first = len(values), np.full(len(values), 1 / len(values))
    p, q, risks = np.zeros(d), np.zeros(d), [values.mean()]
    for _ in range(n):
        kept = gate**2 * (q - 2 * step * values * q + step**2 * fourth(q))
        kept += 2 * step * scale * gate * (values * p - step * fourth(p))
        q = kept + (step * scale) ** 2 * (fourth(first) + NOISE_VAR * values)
        p = (1 - step * values) * gate * p + step * scale * values * first
        risks.append((q - 2 * p + first) @ values)
    return np.array(risks)


@jit_numpy
def risk_of_lms(step, gate, scale):  # of the layer after all tokens -> []
    layer = constant_layer("lms", 2, step, gate, scale)  # a gate of 1 is open to rounding
    points, masses = gauss_hermite([3] * 4)  # degree 4 in every coordinate
    queries = jnp.asarray(ROOT.T)  # their squares sum as E over N(0, Λ) does
    x, answer = points.reshape(-1, 2, 2) @ ROOT.T, recurrent_answer(*layer, queries)
    return linear_risk(answer, x, masses, jnp.full(2, NOISE_VAR), queries=queries)


@pytest.mark.parametrize("case", [(0.2, 1.0, 1.0), (0.3, 0.8, 0.7)])  # step, gate, scale
def test_least_mean_squares_follows_its_recursion_at_any_covariance(case):
    step, gate, scale = case
    stated = lms(2, VALUES, *case)[-1]
    np.testing.assert_allclose(risk_of_lms(step, gate - 1e-15, scale), stated, rtol=1e-10)


def test_least_mean_squares_on_drawn_prompts_follows_it_at_every_length():
    """Controls: eigenvalues that are all their mean, each eigenvector on its own, and covariates
    without Gaussian fourth moments."""
    length, step = 40, 0.1
    spectrum = np.array([2.0, 1.5, 1.2, 1.0, 0.6, 0.4, 0.2, 0.1])
    curve, mean_curve = (lms(length, s, step) for s in (spectrum, 0 * spectrum + spectrum.mean()))
    alone = 1 - 2 * step * spectrum + 3 * (step * spectrum) ** 2
    level = step**2 * NOISE_VAR * spectrum / (1 - alone)
    separate = spectrum @ (level + (1 / len(spectrum) - level) * alone**length)
    case = [lambda _: step] * length, spectrum, NOISE_VAR
    squares = simulate(*case)
    assert largest_score(squares, curve) < 4
    assert min(abs(z_score(squares[-1] - wrong)) for wrong in (mean_curve[-1], separate)) > 8
    alike = simulate(*case, lambda rng, shape: 3**0.5 * rng.choice([-1.0, 1, 0, 0, 0, 0], shape))
    assert abs(z_score(alike[-1] - curve[-1])) < 4  # E x⁴ = 3 as well
    other = simulate(*case, lambda rng, shape: rng.choice([-1.0, 1.0], shape))
    assert abs(z_score(other[-1] - curve[-1])) > 8
