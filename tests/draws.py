"""Random spectra and prompts for the hypotheses of theorem tests."""

from collections.abc import Callable

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.prompts import Prompt

# Every check that draws its own arrays takes the draw's seed from hypothesis: `@seeds`.
SEEDS = st.integers(0, 2**32 - 1)
seeds = hypothesis.given(seed=SEEDS)


def seeded(**ends: tuple[float, float]) -> Callable:
    """The same beside numbers between two ends each, by their names."""
    return hypothesis.given(seed=SEEDS, **{name: st.floats(*each) for name, each in ends.items()})


def on_host(function: Callable, **options) -> Callable:
    """The function compiled; it gives NumPy arrays, on which a test's own sums compile nothing."""
    run = jax.jit(function, **options)
    return lambda *given, **named: jax.device_get(run(*given, **named))


def differ(left: np.ndarray, right: np.ndarray) -> float:
    """The largest difference, over one more than the largest of ``right``."""
    return np.abs(np.asarray(left) - np.asarray(right)).max() / (1 + np.abs(right).max())


def standard_errors(values: np.ndarray) -> float:
    """How many standard errors the mean of independent numbers [N] is from 0."""
    return values.mean() / (values.std() / len(values) ** 0.5)


def within(samples: np.ndarray, expected: ArrayLike) -> bool:
    """Whether the mean of samples [B, ...] is within five standard errors of what is expected."""
    standard_error = samples.std(0) / np.sqrt(len(samples))
    return bool(np.all(np.abs(samples.mean(0) - expected) <= 5 * standard_error + 1e-12))


def eigensystem(key: Array, d: int, low: float, high: float) -> tuple[Array, Array]:
    """Eigenvalues [d] between the bounds, and any orthonormal eigenvectors as columns [d, d]."""
    key_values, key_vectors = jax.random.split(key)
    values = jax.random.uniform(key_values, (d,), minval=low, maxval=high)
    return values, jax.random.orthogonal(key_vectors, d)


def covariance(key: Array, d: int, low: float, high: float) -> Array:  # [d, d]
    values, vectors = eigensystem(key, d, low, high)
    return vectors * values[None] @ vectors.T


def covariance_root(key: Array, d: int, low: float, high: float) -> Array:  # [d, d]
    """A root with any eigenvectors: root rootᵀ has eigenvalues between the bounds."""
    values, vectors = eigensystem(key, d, low, high)
    return vectors * jnp.sqrt(values)[None]


def regression(key: Array, n: int, d: int) -> Prompt:
    """A prompt with noise: all of x, w and the noise are standard normal."""
    keys = jax.random.split(key, 3)
    x = jax.random.normal(keys[0], (n + 1, d))
    y = x @ jax.random.normal(keys[1], (d,)) + jax.random.normal(keys[2], (n + 1,))
    return Prompt(x[:-1], y[:-1], x[-1], y[-1])
