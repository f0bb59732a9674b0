"""Softmax attention smooths over a window, and the best window follows smoothness, noise and n.

docs/theory, "The window of softmax". Sides: the models' attention on drawn prompts; the risk to
first order in 1/n by Bessel functions, and its minimum. Hypotheses: covariates on the circle,
labels a random wave of m periods with independent noise.
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


def of_kernel(kernel):
    def answer(keys, y, scale):  # of every wave and prompt [2, P]
        queries = jnp.broadcast_to(scale * jnp.eye(2)[:1], (PROMPTS, 1, 2))
        weights = attention_weights(queries, keys, jnp.ones((1, N), bool)[None], kernel)
        return jnp.einsum("pn,wpn->wp", weights[:, 0], y)

    return jit_numpy(answer)


softmax, linear = of_kernel("softmax"), of_kernel("linear")


@functools.cache
def smoothed(m, scale):  # and the targets [2, P]
    keys, y, target = draw(m)
    return softmax(keys, y, scale), target


def errors_of_pairs(values):  # [2, P]
    return z_score(values.mean(0))


@pytest.mark.parametrize(("m", "scale"), [(1, 1.0), (1, 5.0), (2, 5.0)])
def test_its_risk_is_that_of_the_first_order(m, scale):
    answers, target = smoothed(m, scale)
    errors = (answers - target) ** 2
    assert abs(errors_of_pairs(errors - first_order(scale, m, N, NOISE))) < 4
    # Controls: another number of periods, and the bias alone.
    assert abs(errors_of_pairs(errors - first_order(scale, m + 1, N, NOISE))) > 8
    assert abs(errors_of_pairs(errors - first_order(scale, m, np.inf, NOISE))) > 8


def best_scale(m, n, noise_var):
    scales = np.geomspace(0.05, 1e5, 40_000)
    return scales[np.argmin(first_order(scales, m, n, noise_var))]


def test_the_best_window_tends_to_that_of_kernel_smoothing():
    for m, noise_var in ((1, 0.5), (3, 0.5), (2, 4.0)):
        stated = (m**4 * 1e10 / (np.sqrt(np.pi) * noise_var)) ** 0.4
        np.testing.assert_allclose(best_scale(m, 1e10, noise_var), stated, rtol=1e-2)


def test_control_linear_attention_reads_one_period_and_no_other():
    read = []
    for m in (1, 2):
        answers, target = smoothed(m, 5.0)
        assert errors_of_pairs(answers * target) > 8
        read.append(abs(errors_of_pairs(linear(*draw(m)[:2], 1 / N) * target)))
    assert read[0] > 8
    assert read[1] < 4
