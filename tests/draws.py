"""Random inputs and comparisons that theorem tests share."""

from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.prompts import Prompt

SEEDS = st.integers(0, 2**32 - 1)
# Few sizes, so that tests share compiled programs; formulas break at 1 and where n < d.
sizes = pytest.mark.parametrize(("n", "d"), [(5, 3), (1, 1), (2, 4)])
two_sizes = pytest.mark.parametrize(("n", "d"), [(5, 3), (2, 4)])
stack_sizes = pytest.mark.parametrize(  # of layers, heads, demonstrations and covariates
    "size", [(3, 2, 5, 3), (1, 1, 1, 1), (2, 3, 2, 4)], ids=str
)


def seeds(test: Callable) -> Callable:
    """Draw a seed, of which the test makes its arrays; 0 first, at which controls are asserted."""
    return hypothesis.example(seed=0)(hypothesis.given(seed=SEEDS)(test))


def seed_and(**ranges: tuple[float, float]) -> Callable:
    """Draw a seed, and a number of each named range."""
    return hypothesis.given(seed=SEEDS, **{name: st.floats(*ends) for name, ends in ranges.items()})


def jit_numpy(function: Callable, **options) -> Callable:
    """Compile a function that returns NumPy arrays, on which a test's sums compile nothing."""
    run = jax.jit(function, **options)
    return lambda *args, **kwargs: jax.device_get(run(*args, **kwargs))


def relative_error(left: np.ndarray, right: np.ndarray) -> float:
    """Return max |left - right| / (1 + max |right|)."""
    return np.abs(np.asarray(left) - np.asarray(right)).max() / (1 + np.abs(right).max())


def z_score(samples: np.ndarray) -> float:
    """Return the mean of independent numbers [N] in standard errors."""
    return samples.mean() / (samples.std() / len(samples) ** 0.5)


def mean_is_near(samples: np.ndarray, expected: np.ndarray | float) -> bool:
    """Return whether the means of samples [B, ...] are within five standard errors of others."""
    standard_error = samples.std(0) / np.sqrt(len(samples))
    return bool(np.all(np.abs(samples.mean(0) - expected) <= 5 * standard_error + 1e-12))


def lags(count: int) -> np.ndarray:
    """Return |i - j| of all places: [count, count]."""
    return np.abs(np.subtract.outer(np.arange(count), np.arange(count)))


def draw_rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    """Draw an orthogonal matrix [d, d]."""
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def draw_eigensystem(
    rng: np.random.Generator, d: int, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw eigenvalues [d] between the bounds, and orthonormal eigenvectors as columns [d, d]."""
    return rng.uniform(low, high, d), draw_rotation(rng, d)


def draw_covariance(rng: np.random.Generator, d: int, low: float, high: float) -> np.ndarray:
    """Draw a covariance [d, d] with eigenvalues between the bounds."""
    values, vectors = draw_eigensystem(rng, d, low, high)
    return vectors * values @ vectors.T


def draw_root(rng: np.random.Generator, d: int, low: float, high: float) -> np.ndarray:
    """Draw a root [d, d]: root rootᵀ has eigenvalues between the bounds."""
    values, vectors = draw_eigensystem(rng, d, low, high)
    return vectors * np.sqrt(values)


def draw_prompt(rng: np.random.Generator, n: int, d: int) -> Prompt:
    """Draw a prompt with noise: all of x, w and the noise are standard normal."""
    x = rng.normal(size=(n + 1, d))
    y = x @ rng.normal(size=d) + rng.normal(size=n + 1)
    return Prompt(x[:-1], y[:-1], x[-1], np.asarray(y[-1]))


def descend(x: np.ndarray, y: np.ndarray, step_sizes, start=0.0) -> np.ndarray:  # [d]
    """Return the weights after steps of gradient descent on |Xw - y|²/2n, by a loop."""
    weights = start + np.zeros(x.shape[1])
    for step_size in step_sizes:
        weights = weights + step_size * x.T @ (y - x @ weights) / len(x)
    return weights


def as_tokens(prompt: Prompt) -> np.ndarray:  # [n+1, e]
    """Return the tokens of a prompt in NumPy, the query's label slot empty."""
    x = np.vstack([prompt.x, prompt.x_query])
    return np.column_stack([x, np.append(prompt.y, 0.0)])


def regressive_root(rho: float, count: int) -> np.ndarray:
    """Return the lower triangular root [T, T] of the correlations ρ^|i - j|, for |ρ| <= 1."""
    scales = np.where(np.arange(count) == 0, 1.0, np.sqrt(1 - rho**2))
    return np.tril(np.asarray(rho) ** lags(count)) * scales


def draw_regressions(
    rng: np.random.Generator,
    count: int,
    n: int,
    d: int,
    noise_var: float,
    drift: float = 1.0,
    correlation: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw x, tasks w [B, n+1, d] and y [B, n+1], the query last: Gaussian, with E|w|² = 1.

    Tasks of one prompt have the correlations drift^|i - j|, covariates correlation^|i - j|.
    """
    roots = regressive_root(drift, n + 1) / d**0.5, regressive_root(correlation, n + 1)
    w, x = (root @ rng.normal(size=(count, n + 1, d)) for root in roots)
    y = (w * x).sum(2)
    y[:, :-1] += noise_var**0.5 * rng.normal(size=(count, n))
    return x, w, y


def draw_stack(
    rng: np.random.Generator, num_layers: int, num_heads: int, e: int, scale: float = 0.3
) -> linear_attention.Params:
    """Draw linear attention, all of whose weights are normal."""
    return linear_attention.Params(*scale * rng.normal(size=(2, num_layers, num_heads, e, e)))


def draw_transformer(
    rng: np.random.Generator,
    num_layers: int,
    num_heads: int,
    key_width: int,
    e: int,
    scale: float = 1.0,
) -> transformer.Params:
    """Draw attention with separate keys, queries, values and outputs, all of them normal."""
    w_q, w_k, w_v, w_o = scale * rng.normal(size=(4, num_layers, num_heads, key_width, e))
    return transformer.Params(w_q, w_k, w_v, w_o.swapaxes(2, 3))


def draw_weights(rng: np.random.Generator, init: Callable, config: Any, scale: float = 1.0) -> Any:
    """Draw normal weights with the shapes of ``init(key, config)``."""
    shapes = jax.eval_shape(init, jax.random.key(0), config)
    return jax.tree.map(lambda leaf: scale * rng.normal(size=leaf.shape), shapes)


def temporal_difference(step_sizes: np.ndarray, d: int) -> linear_attention.Params:
    """Return L steps of batch TD(0), w ← w + (η_l/n) Σ (r + γ w·φ' - w·φ) φ, from w = 0.

    Tokens are transitions [φ, γφ', r], e = 2d + 1, the query [φ, 0, 0] (2405.13861, Theorem 1;
    docs/theory, "In-context TD(0)").
    """
    w_kq = np.zeros((len(step_sizes), 1, 2 * d + 1, 2 * d + 1))
    w_kq[:, 0, :d, :d] = np.multiply.outer(step_sizes, np.eye(d))
    w_kq[:, 0, :d, d:-1] = -w_kq[:, 0, :d, :d]
    w_pv = np.zeros_like(w_kq)
    w_pv[..., -1, -1] = -1
    return linear_attention.Params(w_kq, w_pv)


forward = jit_numpy(linear_attention.forward, static_argnames=("keys", "normalise"))
preconditioned = jit_numpy(constructions.preconditioned)
