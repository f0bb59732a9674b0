"""A2's Theorem 2: a bound on the generalisation gap from the implicit updates of a prompt.

    |E L_population(W_L) - L_demonstrations(W_L)|
        ≤ √( (R²/n) Σ_t [ D log(h1_t/D) - h2_t ] ),   D = e²,
    h1_t = E|G_t - g_t|² + tr C_t,   h2_t = log det C_t

(Wang and Mao 2211.10691 for SGD, A2 for attention with g_t = 0; docs/theory, "The trajectory
bound"). A term is twice the least KL(N(G_t, C_t) ‖ N(g_t, σ²I)) over σ², averaged over prompts, and
never negative.

Caveats, for whoever prints a value. Implicit descent is deterministic given the prompt: C_t, the
covariance of noise in the updates, is an added modelling step and a free parameter, and without it
the bound is infinite. The weights come from pretraining, not from I alone. Demonstrations are few,
so that 1/n is loose. R needs a bounded loss: clip it to [a, b], R = (b - a)/2. And a smaller bound
does not mean a smaller risk.
"""

import chex
import flax.struct
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import Real, as_floats, check_at_least, is_concrete


def trajectory_bound(
    updates: Array,  # [L, e, e], or [B, L, e, e] of prompts
    noise_cov: ArrayLike,  # [], [e², e²] or [L, e², e²]  C_t; a number c stands for cI
    subgaussian: Real,  # R
    n: int,
    *,
    centred: bool = False,
) -> Array:  # []
    """√((R²/n) Σ_t summand_t), A2's bound on the gap of a loss that is R-sub-Gaussian.

    The noise covariance is an assumption, the loss must be bounded and n is small: see the module.
    """
    check_at_least(n, "n")
    if is_concrete(subgaussian) and not 0 < subgaussian < jnp.inf:
        raise ValueError(f"subgaussian = {subgaussian}: it is positive and finite")
    total = summands(updates, noise_cov, centred=centred).sum()
    # The root has no slope at 0: that of 0 is taken. NaN, of a run that diverged, stays NaN.
    share = jnp.where(total <= 0, 1, total) / n
    return jnp.asarray(subgaussian, total.dtype) * jnp.where(total <= 0, 0, jnp.sqrt(share))


def summands(
    updates: Array,  # [L, e, e], or [B, L, e, e] of prompts
    noise_cov: ArrayLike,  # [], [e², e²] or [L, e², e²]
    *,
    centred: bool = False,
) -> Array:  # [L]
    """D log(1 + E|G_t - g_t|²/tr C) + [ D log(tr C/D) - log det C ]: two terms, neither negative.

    The same as D log(h1/D) - h2; for C = cI it is D log(1 + E|G|²/(D c)) ≤ E|G|²/c. The mean over
    prompts stands inside the logarithm, which by Jensen's inequality only enlarges the conditional
    form of the theorem. g_t = 0, or, ``centred``, the mean over prompts, which gives a smaller
    bound in expectation; spread about the mean of the same B prompts is divided by B - 1, so that
    few of them can give a larger one. C is an assumption and may be anything (see the module).
    """
    updates = _checked(updates)
    entries = updates.shape[-1] ** 2
    trace, unevenness = _trace_and_unevenness(noise_cov, updates)
    sizes = _sizes(updates, centred)
    return entries * jnp.log1p(sizes / trace) + unevenness


def optimal_prior_variance(
    updates: Array, noise_cov: ArrayLike, *, centred: bool = False
) -> Array:  # [L]
    """σ_t² = h1_t/D, the variance of the prior N(g_t, σ²I) at which the bound is least.

    The prior is part of the proof, not of the model; C is an assumption (see the module).
    """
    updates = _checked(updates)
    trace, _ = _trace_and_unevenness(noise_cov, updates)
    return (_sizes(updates, centred) + trace) / updates.shape[-1] ** 2


def noise_covariance(updates: Array, shrinkage: float) -> Array:  # [..., e², e²]
    """An estimate of C_t from the updates [B, ..., e, e] of resampled prompts.

    (1 - s) Ĉ + s (tr Ĉ/D) I, Ĉ the sample covariance of the B flattened updates; s in (0, 1] is
    ``shrinkage``. Ĉ alone has rank below B and no logarithm, so the bound depends on s: state it.
    The total variance tr Ĉ is kept. That this spread is Gaussian noise of descent is A2's
    Assumption 1, not a fact (see the module).
    """
    if updates.ndim < 3 or updates.shape[0] < 2:
        raise ValueError(
            f"updates have shape {updates.shape}: expected [B, ..., e, e] with B >= 2 prompts"
        )
    if not 0 < shrinkage <= 1:
        raise ValueError(f"shrinkage = {shrinkage}: it lies in (0, 1], or C is singular")
    flat = updates.reshape(*updates.shape[:-2], -1)
    flat = flat - flat.mean(0, keepdims=True)
    sample = jnp.einsum("b...i,b...j->...ij", flat, flat) / (flat.shape[0] - 1)
    entries = flat.shape[-1]
    level = jnp.trace(sample, axis1=-2, axis2=-1) / entries
    identity = jnp.eye(entries, dtype=sample.dtype)
    return (1 - shrinkage) * sample + shrinkage * jnp.einsum("...,ij->...ij", level, identity)


class Gap(flax.struct.PyTreeNode):
    """Population risk minus empirical risk of a loss clipped to [a, b]."""

    gap: Array  # []
    population: Array  # []
    empirical: Array  # []
    subgaussian: Array  # []  R = (b - a)/2, for ``trajectory_bound``


def measured_gap(
    population_losses: Array,  # [m]  on fresh pairs of the prompt's task
    demonstration_losses: Array,  # [n]  on its demonstrations
    low: Real,
    high: Real,
) -> Gap:
    """What the bound bounds, on one prompt: mean clipped loss on the population and on the prompt.

    Both losses of the same W_L. The theorem is about its mean over prompts; average with jax.vmap.
    The bound adds noise C that this W_L does not have, so it is a comparison, not a test (module).
    """
    losses = [as_floats(each) for each in (population_losses, demonstration_losses)]
    chex.assert_rank(losses, 1, custom_message="losses are [m] and [n]; use jax.vmap for a batch")
    if is_concrete(low) and is_concrete(high) and not low < high:
        raise ValueError(f"low = {low}, high = {high}: a loss is clipped to low < high")
    dtype = losses[0].dtype
    low, high = jnp.asarray(low, dtype), jnp.asarray(high, dtype)
    population, empirical = (jnp.clip(loss, low, high).mean() for loss in losses)
    return Gap(population - empirical, population, empirical, (high - low) / 2)


def _checked(updates: Array) -> Array:
    updates = as_floats(updates)
    if updates.ndim not in (3, 4) or updates.shape[-1] != updates.shape[-2]:
        raise ValueError(f"updates have shape {updates.shape}: expected [L, e, e] or [B, L, e, e]")
    return updates


def _sizes(updates: Array, centred: bool) -> Array:  # [L]
    """E |G_t - g_t|²."""
    batch = updates if updates.ndim == 4 else updates[None]
    if not centred:
        return (batch**2).sum((2, 3)).mean(0)
    if batch.shape[0] < 2:
        raise ValueError("centred needs updates [B, L, e, e] of at least 2 prompts to take a mean")
    departures = batch - batch.mean(0, keepdims=True)
    return (departures**2).sum((0, 2, 3)) / (batch.shape[0] - 1)


def _trace_and_unevenness(noise_cov: ArrayLike, updates: Array) -> tuple[Array, Array]:
    """tr C and D log(tr C/D) - log det C, each [] or [L]; the latter is 0 for C = cI alone."""
    noise_cov = jnp.asarray(noise_cov, updates.dtype)
    num_layers, entries = updates.shape[-3], updates.shape[-1] ** 2
    expected = ((), (entries, entries), (num_layers, entries, entries))
    if noise_cov.shape not in expected:
        raise ValueError(f"noise_cov has shape {noise_cov.shape}: expected one of {expected}")
    if noise_cov.ndim == 0:
        if is_concrete(noise_cov) and not 0 < noise_cov < jnp.inf:
            raise ValueError(f"noise_cov = {noise_cov}: a variance is positive and finite")
        return entries * noise_cov, jnp.zeros_like(noise_cov)
    factor = jnp.linalg.cholesky(noise_cov)
    _check_covariance(noise_cov, factor)
    trace = jnp.trace(noise_cov, axis1=-2, axis2=-1)
    log_det = 2 * jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
    return trace, jnp.maximum(entries * jnp.log(trace / entries) - log_det, 0)


def _check_covariance(noise_cov: Array, factor: Array) -> None:
    if not is_concrete(noise_cov):
        return
    asymmetry = jnp.abs(noise_cov - noise_cov.swapaxes(-2, -1)).max()
    if not asymmetry <= 100 * jnp.finfo(noise_cov.dtype).eps * jnp.abs(noise_cov).max():
        raise ValueError(f"noise_cov is not symmetric: entries differ by {float(asymmetry):.1e}")
    if not jnp.isfinite(factor).all():
        raise ValueError(
            "noise_cov is not positive definite: add a multiple of the identity, as "
            "noise_covariance does by its shrinkage"
        )
