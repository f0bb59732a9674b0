"""Random spectra and prompts for the hypotheses of theorem tests."""

from collections.abc import Callable

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np

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


def within(samples: np.ndarray, expected: np.ndarray | float) -> bool:
    """Whether the mean of samples [B, ...] is within five standard errors of what is expected."""
    standard_error = samples.std(0) / np.sqrt(len(samples))
    return bool(np.all(np.abs(samples.mean(0) - expected) <= 5 * standard_error + 1e-12))


def eigensystem(
    rng: np.random.Generator, d: int, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues [d] between the bounds, and any orthonormal eigenvectors as columns [d, d]."""
    return rng.uniform(low, high, d), np.linalg.qr(rng.normal(size=(d, d)))[0]


def covariance(rng: np.random.Generator, d: int, low: float, high: float) -> np.ndarray:  # [d, d]
    values, vectors = eigensystem(rng, d, low, high)
    return vectors * values @ vectors.T


def covariance_root(
    rng: np.random.Generator, d: int, low: float, high: float
) -> np.ndarray:  # [d, d]
    """A root with any eigenvectors: root rootᵀ has eigenvalues between the bounds."""
    values, vectors = eigensystem(rng, d, low, high)
    return vectors * np.sqrt(values)


def regression(rng: np.random.Generator, n: int, d: int) -> Prompt:
    """A prompt with noise: all of x, w and the noise are standard normal."""
    x = rng.normal(size=(n + 1, d))
    y = x @ rng.normal(size=d) + rng.normal(size=n + 1)
    return Prompt(x[:-1], y[:-1], x[-1], np.asarray(y[-1]))
