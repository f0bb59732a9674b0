"""Posterior means: the best rules there are, given the prior of the weights.

Labels are y_i = w·x_i + N(0, noise_var) throughout. Without noise the posterior lies on the
solutions of Xw = y and the formulas divide by zero: use ``ols`` for those prompts.
"""

import functools
import itertools
import math
from collections.abc import Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import (
    Real,
    as_floats,
    check_finite,
    check_number,
    check_positive,
    check_prompt,
    check_size,
    check_symmetric,
    is_concrete,
)
from lsa_lab.estimators.least_squares import ridge
from lsa_lab.estimators.prefixes import filter_labels
from lsa_lab.prompts import Prompt

MAX_SUPPORTS = 20_000  # supports that sparse_posterior_mean enumerates at most
_CHUNK = 256  # supports in memory at once

_NOISELESS = "without noise use ols or ridge with a small penalty"
_DEGENERATE = "weights without variance are their prior mean"


def gaussian_posterior_mean(
    prompt: Prompt,
    signal_var: Real,
    noise_var: Real,
    *,
    prior_mean: Array | None = None,  # [d]
    prior_covariance: Array | None = None,  # [d, d]
) -> Array:  # [d]
    """Return E(w | demonstrations) under w ~ N(w0, signal_var W).

    With w = w0 + Cv, CCᵀ = W, v is ridge of y - Xw0 on XC with penalty noise_var/(n signal_var).
    w0 is 0 and W the identity by default; W must be positive definite (docs/theory, "The Gaussian
    Bayes rule").
    """
    prompt, signal_var, noise_var = _admit(prompt, signal_var, noise_var)
    n, d = prompt.x.shape
    mean = jnp.zeros_like(prompt.x_query) if prior_mean is None else prior_mean
    chex.assert_shape(mean, (d,), custom_message="prior_mean is [d]")
    check_finite(mean, "prior_mean")
    factor = jnp.eye(d, dtype=prompt.x.dtype)
    if prior_covariance is not None:
        chex.assert_shape(prior_covariance, (d, d), custom_message="prior_covariance is [d, d]")
        check_symmetric(prior_covariance, "prior_covariance", definite=False)
        factor = jnp.linalg.cholesky(prior_covariance)
        if is_concrete(factor) and not jnp.isfinite(factor).all():
            raise ValueError("prior_covariance is not positive definite: add a small multiple of I")
    standard = prompt.replace(x=prompt.x @ factor, y=prompt.y - prompt.x @ mean)
    return mean + factor @ ridge(standard, noise_var / (n * signal_var))


def discrete_posterior_means(prompt: Prompt, tasks: Array, noise_var: Real) -> Array:  # [n+1, d]
    """Return E(w | the first 0, 1, ..., n demonstrations) for w uniform on ``tasks`` [k, d]:

        Σ_k p_k w_k,  log p_k = -Σ_{i≤t} (y_i - x_i·w_k)²/(2σ²) + constant

    It is what pretraining on few tasks teaches (dMMSE: Raventós et al. 2306.15063; docs/theory,
    "The discrete Bayes rule"). Sums are kept as logarithms, so that no weight becomes 0/0.
    """
    prompt = check_prompt(prompt)
    noise_var = check_number(noise_var, "noise_var", prompt, "noise 0 leaves the nearest task")
    chex.assert_rank(tasks, 2, custom_message="tasks is [k, d], a row for each task")
    d = prompt.x.shape[1]
    chex.assert_shape(tasks, (tasks.shape[0], d), custom_message="tasks is [k, d], d as in x")
    if not len(tasks):
        raise ValueError("tasks has no rows: w is one of one task or more")
    check_finite(tasks, "tasks")
    squares = (prompt.y[:, None] - prompt.x @ tasks.T) ** 2  # [n, k]
    evidence = jnp.pad(jnp.cumsum(squares, 0), ((1, 0), (0, 0)))
    return jax.nn.softmax(-evidence / (2 * noise_var)) @ tasks


def nested_posterior_mean(
    prompt: Prompt, sizes: Sequence[int], noise_var: Real, probabilities: ArrayLike | None = None
) -> Array:  # [d]
    """Return E(w | demonstrations) if w is N(0, I/S) on the first S coordinates and 0 elsewhere.

    S is one of ``sizes``, by default each with the same probability. The means of the classes are
    averaged by probability times evidence, p(S) p(y | X, S): the simplest class that explains the
    labels wins (2506.19351; docs/theory, "Nested classes").
    """
    return nested_posterior_means(prompt, sizes, noise_var, probabilities)[-1]


def nested_posterior_means(
    prompt: Prompt, sizes: Sequence[int], noise_var: Real, probabilities: ArrayLike | None = None
) -> Array:  # [n+1, d]
    """Return ``nested_posterior_mean`` of the first 0, 1, ..., n demonstrations."""
    prompt = check_prompt(prompt)
    noise_var = check_number(noise_var, "noise_var", prompt, _NOISELESS)
    d, dtype = prompt.x.shape[1], prompt.x.dtype
    sizes = [check_size(size, d, "weights", "a size") for size in sizes]
    shares = jnp.ones(len(sizes), dtype) if probabilities is None else as_floats(probabilities)
    chex.assert_shape(shares, (len(sizes),), custom_message="probabilities has one for each size")
    check_positive(shares, "probabilities")
    priors = jnp.asarray([np.diag((np.arange(d) < size) / size) for size in sizes], dtype)
    run = jax.vmap(filter_labels, (None, 0, None, None))
    means, log_densities = run(prompt, priors, noise_var, jnp.ones((), dtype))
    evidence = jnp.pad(jnp.cumsum(log_densities, 1), ((0, 0), (1, 0)))  # [K, n+1]
    weights = jax.nn.softmax(jnp.log(shares).astype(dtype)[:, None] + evidence, 0)
    return jnp.einsum("kt,ktd->td", weights, means)


def sparse_posterior_mean(
    prompt: Prompt, sparsity: int, signal_var: Real, noise_var: Real
) -> Array:  # [d]
    """Return E(w | demonstrations) if ``sparsity`` weights, anywhere, are N(0, signal_var).

    Σ_S p_S M_S⁻¹ c_S over all supports S, with c = Xᵀy, M_S = (XᵀX)_SS + (σ²/τ²) I and
    p_S ∝ exp(c_Sᵀ M_S⁻¹ c_S / 2σ² - ½ log det M_S) (docs/theory, "The sparse Bayes rule"). Exact:
    it solves (d choose sparsity) small systems.

    Raises ValueError for more than ``MAX_SUPPORTS`` supports.
    """
    prompt, signal_var, noise_var = _admit(prompt, signal_var, noise_var)
    d = prompt.x.shape[1]
    sparsity = check_size(sparsity, d, "weights", "sparsity")
    count = math.comb(d, sparsity)
    if count > MAX_SUPPORTS:
        raise ValueError(
            f"{count} supports of {sparsity} among {d} weights: more than {MAX_SUPPORTS} are not "
            "enumerated; choose a smaller d, or compare with lasso"
        )
    return _average_supports(prompt.x, prompt.y, sparsity, signal_var, noise_var)


def _admit(prompt: Prompt, signal_var: Real, noise_var: Real) -> tuple[Prompt, Array, Array]:
    prompt = check_prompt(prompt)
    return (
        prompt,
        check_number(signal_var, "signal_var", prompt, _DEGENERATE),
        check_number(noise_var, "noise_var", prompt, _NOISELESS),
    )


@functools.partial(jax.jit, static_argnames="sparsity")
def _average_supports(
    x: Array, y: Array, sparsity: int, signal_var: Array, noise_var: Array
) -> Array:  # [d]
    """Average over chunks of supports, with weights relative to the largest so far."""
    n, d = x.shape
    gram, moment = x.T @ x, x.T @ y
    penalty = noise_var / signal_var * jnp.eye(min(n, sparsity), dtype=x.dtype)[:, :, None]

    def fit(supports):  # [s, c] -> their weights and, up to one constant, log evidences [c]
        if n > sparsity:
            matrices = gram[supports[:, None], supports[None]] + penalty  # [s, s, c]
            weights, log_det = _solve_many(matrices, moment[supports])
            explained = jnp.sum(moment[supports] * weights, axis=0)
            return weights, explained / (2 * noise_var) - log_det / 2
        # Every support can explain all labels: |y|²/σ² would leave rounding as the difference.
        columns = jnp.moveaxis(x.T[supports], 1, 2)  # [s, n, c]
        matrices = jnp.einsum("sic,sjc->ijc", columns, columns) + penalty  # [n, n, c]
        dual, log_det = _solve_many(matrices, jnp.broadcast_to(y[:, None], columns.shape[1:]))
        weights = jnp.einsum("sic,ic->sc", columns, dual)
        return weights, -(y @ dual) / (2 * signal_var) - log_det / 2

    def add_chunk(state, chunk):
        largest, total, average = state
        supports, is_new = chunk  # [s, c], [c]
        weights, evidence = fit(supports)
        evidence = jnp.where(is_new, evidence, -jnp.inf)
        peak = jnp.maximum(largest, jnp.max(evidence))
        share, decay = jnp.exp(evidence - peak), jnp.exp(largest - peak)
        placed = jnp.zeros(d, x.dtype).at[supports].add(share[None] * weights)
        return (peak, decay * total + jnp.sum(share), decay * average + placed), None

    start = (jnp.array(-jnp.inf, x.dtype), jnp.zeros((), x.dtype), jnp.zeros(d, x.dtype))
    (_, total, average), _ = jax.lax.scan(add_chunk, start, _supports(d, sparsity))
    return average / total


@functools.cache
def _supports(d: int, sparsity: int) -> tuple[np.ndarray, np.ndarray]:  # [m, s, c], [m, c]
    """Return all supports in chunks of c, and False for the copies that fill the last chunk."""
    supports = np.array(list(itertools.combinations(range(d), sparsity)), np.int32)
    missing = -len(supports) % min(_CHUNK, len(supports))
    filled = np.concatenate([supports, np.repeat(supports[:1], missing, axis=0)])
    is_new = np.arange(len(filled)) < len(supports)
    chunks = filled.reshape(-1, min(_CHUNK, len(supports)), sparsity)
    return chunks.transpose(0, 2, 1), is_new.reshape(chunks.shape[:2])


def _solve_many(matrices: Array, right: Array) -> tuple[Array, Array]:  # [s, c], [c]
    """Solve many positive definite systems [s, s, c] by Gauss-Jordan elimination; add log det.

    The systems lie on the last axis. Batched LAPACK calls that run side by side on a CPU can wait
    for each other for ever (jaxlib 0.10), so none is made here.
    """
    system = jnp.concatenate([matrices, right[:, None]], axis=1)  # [s, s+1, c]
    log_det = jnp.zeros_like(right[0])
    for k in range(len(matrices)):
        log_det = log_det + jnp.log(system[k, k])
        row = system[k] / system[k, k][None]
        system = (system - system[:, k][:, None] * row[None]).at[k].set(row)
    return system[:, -1], log_det
