"""Softmax attention smooths over a window, and the best window follows smoothness, noise and n.

Covariates on the circle, labels a random wave of m periods with independent noise. docs/theory,
"The window of softmax".
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
def attend(keys, y, scale, kernel):  # of every wave and prompt [2, P]
    queries = jnp.broadcast_to(scale * jnp.eye(2)[:1], (PROMPTS, 1, 2))
    weights = attention_weights(queries, keys, jnp.ones((1, N), bool)[None], kernel)
    return jnp.einsum("pn,wpn->wp", weights[:, 0], y)


def z_score_of_pairs(values):  # [2, P]
    return z_score(values.mean(0))


@pytest.mark.parametrize(("m", "scale"), [(1, 1.0), (1, 5.0), (2, 5.0)])
def test_its_risk_is_that_of_the_first_order(m, scale):
    keys, y, target = draw(m)
    errors = (attend(keys, y, scale, "softmax") - target) ** 2
    assert abs(z_score_of_pairs(errors - first_order(scale, m, N, NOISE))) < 4
    # Controls: another number of periods, and the bias alone.
    assert abs(z_score_of_pairs(errors - first_order(scale, m + 1, N, NOISE))) > 8
    assert abs(z_score_of_pairs(errors - first_order(scale, m, np.inf, NOISE))) > 8


def test_the_best_window_tends_to_that_of_kernel_smoothing():
    for m, noise_var in ((1, 0.5), (3, 0.5), (2, 4.0)):
        stated = (m**4 * 1e10 / (np.sqrt(np.pi) * noise_var)) ** 0.4
        scales = stated * np.geomspace(0.5, 2, 2001)
        best = scales[np.argmin(first_order(scales, m, 1e10, noise_var))]
        np.testing.assert_allclose(best, stated, rtol=1e-2)


def test_control_linear_attention_reads_one_period_and_no_other():
    read = []
    for m in (1, 2):
        keys, y, target = draw(m)
        assert z_score_of_pairs(attend(keys, y, 5.0, "softmax") * target) > 8
        read.append(abs(z_score_of_pairs(attend(keys, y, 1 / N, "linear") * target)))
    assert read[0] > 8
    assert read[1] < 4
