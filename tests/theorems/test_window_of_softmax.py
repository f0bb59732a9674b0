"""Softmax attention smooths over a window, and the best window follows smoothness, noise and n; to
many Gaussian tokens it is a linear map of the query.

Covariates on the circle, labels a random wave of m periods with independent noise; or 4 000 tokens,
where the limit is VΓk. docs/theory, "The window of softmax", "Softmax at long prompts".
"""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ive

from draws import jit_numpy, z_score
from lsa_lab.models.blocks import attention_weights

N, PROMPTS, NOISE = 400, 10_000, 0.5


def first_order(scale, m, n, noise_var):
    """E (ŷ - f)² for E f² = 1: (1 - a)² + (σ²B₀ + (1 - 2a + 3a²)B₀ + (2 - 4a)B_m)/n."""
    a = ive(m, scale) / ive(0, scale)
    b, b_m = (ive(k, 2 * scale) / ive(0, scale) ** 2 for k in (0, m))
    spread = noise_var * b + (1 - 2 * a + 3 * a**2) * b + (2 - 4 * a) * b_m
    return (1 - a) ** 2 + spread / n


@functools.lru_cache(1)
def draw(m):  # keys and labels of many prompts, and what the query at the angle 0 has
    """Two waves a prompt, a quarter of a period apart: the squares of their targets sum to 2."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, (PROMPTS, N))
    phases = rng.uniform(0, 2 * np.pi, PROMPTS) + np.array([[0], [np.pi / 2]])
    y = np.sqrt(2) * np.cos(m * angles + phases[..., None])
    y += NOISE**0.5 * rng.normal(size=(PROMPTS, N))
    return np.stack([np.cos(angles), np.sin(angles)], -1), y, np.sqrt(2) * np.cos(phases)


@functools.partial(jit_numpy, static_argnums=3)
def attend(keys, y, query, kernel):  # [P, n, 2], [..., P, n] -> [..., P]
    queries = jnp.broadcast_to(query, (len(keys), 1, 2))
    weights = attention_weights(queries, keys, jnp.ones((1, 1, keys.shape[1]), bool), kernel)
    return jnp.einsum("pn,...pn->...p", weights[:, 0], y)


@pytest.mark.parametrize(("m", "scales"), [(1, (1.0, 5.0)), (2, (5.0,))])
def test_its_risk_is_that_of_the_first_order_and_linear_attention_reads_one_period(m, scales):
    keys, y, target = draw(m)
    for scale in scales:
        answers = attend(keys, y, np.array([scale, 0]), "softmax")
        errors = ((answers - target) ** 2).mean(0)
        assert abs(z_score(errors - first_order(scale, m, N, NOISE))) < 4
        # Controls: another number of periods, and the bias alone.
        assert abs(z_score(errors - first_order(scale, m + 1, N, NOISE))) > 8
        assert abs(z_score(errors - first_order(scale, m, np.inf, NOISE))) > 8
    # Control: linear attention reads one period and no other.
    assert z_score((answers * target).mean(0)) > 8
    read = abs(z_score((attend(keys, y, np.array([1 / N, 0]), "linear") * target).mean(0)))
    assert read > 8 if m == 1 else read < 4


def test_the_best_window_tends_to_that_of_kernel_smoothing():
    for m, noise_var in ((1, 0.5), (3, 0.5), (2, 4.0)):
        stated = (m**4 * 1e10 / (np.sqrt(np.pi) * noise_var)) ** 0.4
        scales = stated * np.geomspace(0.5, 2, 2001)
        best = scales[np.argmin(first_order(scales, m, 1e10, noise_var))]
        np.testing.assert_allclose(best, stated, rtol=1e-2)


def test_attention_to_many_tokens_scatters_about_the_limit_as_stated():
    root, v, k = np.array([[1.0, 0.0], [0.4, 0.7]]), np.array([1, -0.5]), np.array([0.9, 0.3])
    gamma = root @ root.T
    stretch, limit = np.exp(k @ gamma @ k), v @ gamma @ k
    variance = stretch * (v @ gamma @ v + limit**2)  # of √n (read - limit)

    def compute_errors(z):  # of standardised tokens [B, n, 2]
        tokens = z @ root.T
        return np.sqrt(4000) * (attend(tokens, tokens @ v, k, "softmax") - limit)

    errors = compute_errors(np.random.default_rng(0).normal(size=(400, 4000, 2)))
    assert abs(errors.mean()) < 4 * (variance / 400) ** 0.5 + 2 * stretch / 4000**0.5
    assert abs(errors.var() / variance - 1) < 4 * (2 / 400) ** 0.5
    # Controls: without VΓk kᵀΓVᵀ, and without the stretch, it is another variance.
    for wrong in (variance - stretch * limit**2, variance / stretch):
        assert abs(errors.var() / wrong - 1) > 4 * (2 / 400) ** 0.5
    # Control: for skewed tokens of the same covariance the limit is another.
    errors = compute_errors(np.random.default_rng(0).exponential(size=(400, 4000, 2)) - 1)
    assert abs(errors.mean()) > 20 * (variance / 400) ** 0.5
