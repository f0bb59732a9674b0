"""Least mean squares learns each eigenvector of the covariance by one closed recursion.

Gaussian covariates, E wwᵀ = I/d, independent noise. docs/theory, "Any covariance".
"""

import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from population import constant_layer, gauss_hermite, linear_risk, recurrent_answer

N, D, NOISE = 2, 2, 0.4
VALUES, TURN = np.array([1.5, 0.3]), np.array([[0.8, 0.6], [-0.6, 0.8]])
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
        q = kept + (step * scale) ** 2 * (fourth(first) + NOISE * values)
        p = (1 - step * values) * gate * p + step * scale * values * first
        risks.append((q - 2 * p + first) @ values)
    return np.array(risks)


@jit_numpy
def risk(step, gate, scale):  # of the layer after all tokens -> []
    layer = constant_layer("lms", D, step, gate, scale)  # a gate of 1 is open to rounding
    points, masses = gauss_hermite([3] * (N * D))  # degree 4 in every coordinate
    queries = jnp.asarray(ROOT.T)  # their squares sum as E over N(0, Λ) does
    x, answer = points.reshape(-1, N, D) @ ROOT.T, recurrent_answer(*layer, queries)
    return linear_risk(answer, x, masses, jnp.full(N, NOISE), queries=queries)


@pytest.mark.parametrize("case", [(0.2, 1.0, 1.0), (0.3, 0.8, 0.7)])  # step, gate, scale
def test_the_layer_follows_the_recursion(case):
    step, gate, scale = case
    stated = lms(N, VALUES, *case)[-1]
    np.testing.assert_allclose(risk(step, gate - 1e-15, scale), stated, rtol=1e-10)


LENGTH, WIDTH, STEP, PROMPTS = 40, 8, 0.1, 20_000
SPECTRUM = np.array([2.0, 1.5, 1.2, 1.0, 0.6, 0.4, 0.2, 0.1])


def z_scores(draw, *curves):
    """Simulated E (ŵ - w)ᵀΛ(ŵ - w) from curves, in standard errors; x is the root of Λ times the
    draw."""
    rng = np.random.default_rng(0)
    e = rng.normal(size=(PROMPTS, WIDTH)) / WIDTH**0.5
    risks = [e**2 @ SPECTRUM]
    for _ in range(LENGTH):
        x = draw(rng, (PROMPTS, WIDTH)) * np.sqrt(SPECTRUM)
        surprise = (x * e).sum(1) + NOISE**0.5 * rng.normal(size=PROMPTS)
        e = e - STEP * surprise[:, None] * x
        risks.append(e**2 @ SPECTRUM)
    return (np.mean(risks, 1) - np.array(curves)) / np.std(risks, 1) * PROMPTS**0.5


def curve(eigenvalues):
    return lms(LENGTH, eigenvalues, STEP)


def test_drawn_prompts_stay_within_four_standard_errors_at_every_length():
    # Controls: eigenvalues that are all their mean, and each eigenvector on its own.
    alone = 1 - 2 * STEP * SPECTRUM + 3 * (STEP * SPECTRUM) ** 2
    level = STEP**2 * NOISE * SPECTRUM / (1 - alone)
    separate = SPECTRUM @ (level + (1 / WIDTH - level) * alone**LENGTH)
    wrong = curve(np.full(WIDTH, SPECTRUM.mean())), np.full(LENGTH + 1, separate)
    scores = z_scores(lambda rng, shape: rng.normal(size=shape), curve(SPECTRUM), *wrong)
    assert np.abs(scores[0]).max() < 4
    assert np.abs(scores[1:, -1]).min() > 8


def test_control_covariates_without_gaussian_fourth_moments_follow_another_curve():
    for factor, values in ((3, [-1.0, 1, 0, 0, 0, 0]), (1, [-1.0, 1.0])):
        scores = z_scores(
            lambda rng, shape, f=factor, v=values: f**0.5 * rng.choice(v, shape), curve(SPECTRUM)
        )
        last = abs(scores[0, -1])
        assert last < 4 if factor == 3 else last > 8  # E x⁴ = 3: no other curve
