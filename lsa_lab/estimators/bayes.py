"""The best rules there are, given the prior of the weights: posterior means.

Labels are y_i = w·x_i + N(0, noise_var) throughout. Without noise the posterior sits on the
solutions of Xw = y and the formulas divide by zero: those prompts are for ``ols``.
"""

import functools
import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve

from lsa_lab.arguments import (
    Real,
    admit,
    check_factorable,
    check_finite,
    check_symmetric,
    check_whole,
    is_concrete,
    number,
)
from lsa_lab.estimators.least_squares import ridge
from lsa_lab.prompts import Prompt

MAX_SUPPORTS = 20_000  # supports that sparse_posterior_mean is willing to enumerate
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
    """E(w | demonstrations) under w ~ N(w0, signal_var W): ridge, in the prior's coordinates.

    With w = w0 + Cv, CCᵀ = W, v is ridge of y - Xw0 on XC with penalty noise_var/(n signal_var).
    w0 is 0 and W the identity unless given; W must be positive definite (docs/theory, "The Gaussian
    Bayes rule").
    """
    prompt, signal_var, noise_var = _admit(prompt, signal_var, noise_var)
    plain, mean, factor = _standardise(prompt, prior_mean, prior_covariance)
    return mean + factor @ ridge(plain, noise_var / (prompt.x.shape[0] * signal_var))


def gaussian_predictive_variance(
    prompt: Prompt,
    signal_var: Real,
    noise_var: Real,
    *,
    prior_covariance: Array | None = None,  # [d, d]
) -> Array:  # []
    """Variance of a label with noise at the query under w ~ N(w0, signal_var W).

    σ² + σ² x_qᵀ (XᵀX + (σ²/τ²) W⁻¹)⁻¹ x_q; the noise-free target w·x_query has σ² less. For n < d,
    in the prior's coordinates, σ² + min_a (τ²|x_q - Xᵀa|² + σ²|a|²), whose smaller system has no
    eigenvalue σ²/τ² of its own.
    """
    prompt, signal_var, noise_var = _admit(prompt, signal_var, noise_var)
    check_factorable(prompt.x, "x")
    plain, _, _ = _standardise(prompt, None, prior_covariance)
    x, x_query, penalty = plain.x, plain.x_query, noise_var / signal_var
    n, d = x.shape
    if n < d:
        gram = x @ x.T + penalty * jnp.eye(n, dtype=x.dtype)
        shares = solve(gram, x @ x_query, assume_a="pos")
        unseen = x_query - x.T @ shares
        return noise_var + signal_var * (unseen @ unseen) + noise_var * (shares @ shares)
    precision = x.T @ x + penalty * jnp.eye(d, dtype=x.dtype)
    return noise_var * (1 + x_query @ solve(precision, x_query, assume_a="pos"))


def discrete_posterior_means(prompt: Prompt, tasks: Array, noise_var: Real) -> Array:  # [n+1, d]
    """E(w | the first 0, 1, ..., n demonstrations) where w is one of ``tasks`` [k, d], all alike:

        Σ_k p_k w_k,  log p_k = -Σ_{i≤t} (y_i - x_i·w_k)²/(2σ²) + constant

    It is what pretraining on few tasks teaches (dMMSE: Raventós et al. 2306.15063; docs/theory,
    "The discrete Bayes rule"). Sums are kept as logarithms: far demonstrations make no 0/0.
    """
    prompt = admit(prompt)
    noise_var = number(noise_var, "noise_var", prompt, "without noise the nearest task is left")
    chex.assert_rank(tasks, 2, custom_message="tasks is [k, d], a row for each task")
    d = prompt.x.shape[1]
    chex.assert_shape(tasks, (tasks.shape[0], d), custom_message="tasks is [k, d], d as in x")
    if not len(tasks):
        raise ValueError("tasks has no rows: w is one of one task or more")
    check_finite(tasks, "tasks")
    squares = (prompt.y[:, None] - prompt.x @ tasks.T) ** 2  # [n, k]
    evidence = jnp.pad(jnp.cumsum(squares, 0), ((1, 0), (0, 0)))
    return jax.nn.softmax(-evidence / (2 * noise_var)) @ tasks


def sparse_posterior_mean(
    prompt: Prompt, sparsity: int, signal_var: Real, noise_var: Real
) -> Array:  # [d]
    """E(w | demonstrations) if exactly ``sparsity`` weights, anywhere, are N(0, signal_var).

    Σ_S p_S M_S⁻¹ c_S over all supports S, with c = Xᵀy, M_S = (XᵀX)_SS + (σ²/τ²) I and
    p_S ∝ exp(c_Sᵀ M_S⁻¹ c_S / 2σ² - ½ log det M_S) (docs/theory, "The sparse Bayes rule"). Exact,
    so its cost is that of (d choose sparsity) small systems; above ``MAX_SUPPORTS`` of them it
    refuses.
    """
    prompt, signal_var, noise_var = _admit(prompt, signal_var, noise_var)
    d = prompt.x.shape[1]
    if not 1 <= (sparsity := check_whole(sparsity, "sparsity")) <= d:
        raise ValueError(f"sparsity = {sparsity}, d = {d}: choose 1 to {d}")
    count = math.comb(d, sparsity)
    if count > MAX_SUPPORTS:
        raise ValueError(
            f"{count} supports of {sparsity} among {d} weights: more than {MAX_SUPPORTS} are not "
            "enumerated; choose a smaller d, or compare with lasso"
        )
    return _average_supports(prompt.x, prompt.y, sparsity, signal_var, noise_var)


def spike_and_slab_posterior_mean(
    prompt: Prompt, inclusion: Real, signal_var: Real, noise_var: Real
) -> Array:  # [d]
    """E(w | demonstrations) if each weight is N(0, signal_var) with probability ``inclusion``.

    For designs with XᵀX = nI only, where weights do not interact. With v = σ²/n and z = Xᵀy/n,
    w_j = p_j τ²/(τ² + v) z_j, p_j the probability that z_j ~ N(0, τ² + v) rather than N(0, v)
    (docs/theory, "Spikes and slabs").
    """
    prompt, signal_var, noise_var = _admit(prompt, signal_var, noise_var)
    inclusion = number(inclusion, "inclusion", prompt, "it is a probability", positive=False)
    if is_concrete(inclusion) and inclusion > 1:
        raise ValueError(f"inclusion = {inclusion}: it is a probability, at most 1")
    n, d = prompt.x.shape
    gram = prompt.x.T @ prompt.x / n
    if is_concrete(gram):
        excess = float(jnp.max(jnp.abs(gram - jnp.eye(d, dtype=gram.dtype))))
        if excess > float(jnp.finfo(gram.dtype).eps) ** 0.5:
            raise ValueError(
                f"XᵀX/n differs from the identity by {excess:.1e}: this rule is for orthogonal "
                "designs; use sparse_posterior_mean"
            )
    estimate, spread = prompt.x.T @ prompt.y / n, noise_var / n
    shrinkage = signal_var / (signal_var + spread)
    log_odds = jnp.log(inclusion) - jnp.log1p(-inclusion) - jnp.log1p(signal_var / spread) / 2
    return jax.nn.sigmoid(log_odds + shrinkage * estimate**2 / (2 * spread)) * shrinkage * estimate


def _admit(prompt: Prompt, signal_var: Real, noise_var: Real) -> tuple[Prompt, Array, Array]:
    prompt = admit(prompt)
    return (
        prompt,
        number(signal_var, "signal_var", prompt, _DEGENERATE),
        number(noise_var, "noise_var", prompt, _NOISELESS),
    )


def _standardise(
    prompt: Prompt, mean: Array | None, covariance: Array | None
) -> tuple[Prompt, Array, Array]:  # the prompt of v in w = mean + factor v, [d], [d, d]
    d = prompt.x.shape[1]
    if mean is None:
        mean = jnp.zeros_like(prompt.x_query)
    chex.assert_shape(mean, (d,), custom_message="prior_mean is [d]")
    factor = jnp.eye(d, dtype=prompt.x.dtype)
    if covariance is not None:
        chex.assert_shape(covariance, (d, d), custom_message="prior_covariance is [d, d]")
        check_symmetric(covariance, "prior_covariance", definite=False)
        factor = jnp.linalg.cholesky(covariance)
        if is_concrete(factor) and not jnp.isfinite(factor).all():
            raise ValueError("prior_covariance is not positive definite: add a small multiple of I")
    check_finite(mean, "prior_mean")
    plain = prompt.replace(
        x=prompt.x @ factor, y=prompt.y - prompt.x @ mean, x_query=prompt.x_query @ factor
    )
    return plain, mean, factor


@functools.partial(jax.jit, static_argnames="sparsity")
def _average_supports(
    x: Array, y: Array, sparsity: int, signal_var: Array, noise_var: Array
) -> Array:  # [d]
    """A running average over chunks of supports; weights are kept relative to the heaviest."""
    n, d = x.shape
    gram, moment = x.T @ x, x.T @ y
    penalty = noise_var / signal_var * jnp.eye(min(n, sparsity), dtype=x.dtype)[:, :, None]

    def fit(supports):  # [s, c] -> their weights and, up to one constant, log evidences [c]
        if n > sparsity:
            matrices = gram[supports[:, None], supports[None]] + penalty  # [s, s, c]
            weights, log_det = _solve_many(matrices, moment[supports])
            explained = jnp.sum(moment[supports] * weights, axis=0)
            return weights, explained / (2 * noise_var) - log_det / 2
        # Each support can explain all: next to |y|²/σ² what tells them apart would be rounding.
        columns = jnp.moveaxis(x.T[supports], 1, 2)  # [s, n, c]
        matrices = jnp.einsum("sic,sjc->ijc", columns, columns) + penalty  # [n, n, c]
        dual, log_det = _solve_many(matrices, jnp.broadcast_to(y[:, None], columns.shape[1:]))
        weights = jnp.einsum("sic,ic->sc", columns, dual)
        return weights, -(y @ dual) / (2 * signal_var) - log_det / 2

    def absorb(state, chunk):
        heaviest, total, average = state
        supports, real = chunk  # [s, c], [c]
        weights, evidence = fit(supports)
        evidence = jnp.where(real, evidence, -jnp.inf)
        peak = jnp.maximum(heaviest, jnp.max(evidence))
        share, fade = jnp.exp(evidence - peak), jnp.exp(heaviest - peak)
        placed = jnp.zeros(d, x.dtype).at[supports].add(share[None] * weights)
        return (peak, fade * total + jnp.sum(share), fade * average + placed), None

    start = (jnp.array(-jnp.inf, x.dtype), jnp.zeros((), x.dtype), jnp.zeros(d, x.dtype))
    (_, total, average), _ = jax.lax.scan(absorb, start, _supports(d, sparsity))
    return average / total


@functools.cache
def _supports(d: int, sparsity: int) -> tuple[np.ndarray, np.ndarray]:  # [m, s, c], [m, c]
    """All supports in chunks of c; the last is filled up with copies of one, marked not real."""
    supports = np.array(list(itertools.combinations(range(d), sparsity)), np.int32)
    missing = -len(supports) % min(_CHUNK, len(supports))
    filled = np.concatenate([supports, np.repeat(supports[:1], missing, axis=0)])
    real = np.arange(len(filled)) < len(supports)
    chunks = filled.reshape(-1, min(_CHUNK, len(supports)), sparsity)
    return chunks.transpose(0, 2, 1), real.reshape(chunks.shape[:2])


def _solve_many(matrices: Array, right: Array) -> tuple[Array, Array]:  # [s, c], [c]
    """Gauss-Jordan elimination of many positive definite systems [s, s, c], and log det.

    The systems lie on the last axis and are eliminated together. On CPU batched LAPACK calls that
    run side by side can wait for each other for ever (jaxlib 0.10), hence none here.
    """
    system = jnp.concatenate([matrices, right[:, None]], axis=1)  # [s, s+1, c]
    log_det = jnp.zeros_like(right[0])
    for k in range(len(matrices)):
        log_det = log_det + jnp.log(system[k, k])
        row = system[k] / system[k, k][None]
        system = (system - system[:, k][:, None] * row[None]).at[k].set(row)
    return system[:, -1], log_det
