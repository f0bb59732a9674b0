"""Least mean squares learns each eigenvector of the covariance by one closed recursion.

Gaussian covariates, E wwᵀ = I/d, independent noise. docs/theory, "Any covariance".
"""

import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, z_score
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


def test_drawn_prompts_stay_within_four_standard_errors_at_every_length():
    """Controls: eigenvalues that are all their mean, each eigenvector on its own, and covariates
    without Gaussian fourth moments. The covariates are the root of Λ times a draw."""
    length, step, prompts = 40, 0.1, 20_000
    spectrum = np.array([2.0, 1.5, 1.2, 1.0, 0.6, 0.4, 0.2, 0.1])

    def simulate(draw):  # [length + 1, B], (ŵ - w)ᵀΛ(ŵ - w)
        rng = np.random.default_rng(0)
        e = rng.normal(size=(prompts, len(spectrum))) / len(spectrum) ** 0.5
        risks = [e**2 @ spectrum]
        for _ in range(length):
            x = draw(rng, e.shape) * np.sqrt(spectrum)
            surprise = (x * e).sum(1) + NOISE**0.5 * rng.normal(size=prompts)
            e = e - step * surprise[:, None] * x
            risks.append(e**2 @ spectrum)
        return risks

    curve, mean_curve = (lms(length, s, step) for s in (spectrum, 0 * spectrum + spectrum.mean()))
    alone = 1 - 2 * step * spectrum + 3 * (step * spectrum) ** 2
    level = step**2 * NOISE * spectrum / (1 - alone)
    separate = spectrum @ (level + (1 / len(spectrum) - level) * alone**length)
    risks = simulate(lambda rng, shape: rng.normal(size=shape))
    assert max(abs(z_score(r - stated)) for r, stated in zip(risks, curve, strict=True)) < 4
    assert min(abs(z_score(risks[-1] - wrong)) for wrong in (mean_curve[-1], separate)) > 8
    alike = simulate(lambda rng, shape: 3**0.5 * rng.choice([-1.0, 1, 0, 0, 0, 0], shape))
    assert abs(z_score(alike[-1] - curve[-1])) < 4  # E x⁴ = 3 as well
    other = simulate(lambda rng, shape: rng.choice([-1.0, 1.0], shape))
    assert abs(z_score(other[-1] - curve[-1])) > 8
