"""A2's Theorem 2: a bound on the generalisation gap from the implicit updates of a prompt.

    |E L_population(W_L) - L_demonstrations(W_L)|
        ≤ √( (R²/n) Σ_t [ D log(h1_t/D) - h2_t ] ),   D = e²,
    h1_t = E|G_t - g_t|² + tr C_t,   h2_t = log det C_t

(Wang and Mao 2211.10691 for SGD, A2 for attention with g_t = 0; docs/theory, "The trajectory
bound"). A term is twice the least KL(N(G_t, C_t) ‖ N(g_t, σ²I)) over σ², at σ² = h1_t/D, averaged
over prompts, and never negative.

Caveats to print next to a value. Implicit descent is deterministic given the prompt: C_t, the
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
from lsa_lab.theory.domains import check


def trajectory_bound(
    updates: Array,
    noise_cov: ArrayLike,
    subgaussian: Real,
    n: int,
    *,
    centred: bool = False,
) -> Array:  # []
    """Return √((R²/n) Σ_t summand_t), A2's bound on the gap of a loss that is R-sub-Gaussian.

    Args:
        updates: G_t [L, e, e], or [B, L, e, e] of B prompts.
        noise_cov: C_t, an assumption, as a number c for cI, or [e², e²], or [L, e², e²].
        subgaussian: R, half the range of a bounded loss.
        n: the demonstrations of a prompt.
        centred: take the mean over prompts for g_t in place of 0; see ``summands``.

    Returns:
        The bound; NaN for updates that are not finite.

    Raises:
        ValueError: a shape or a number is out of range, or C_t is not a covariance.
    """
    check_at_least(n, "n")
    check(subgaussian=subgaussian)
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
    """Return D log(1 + E|G_t - g_t|²/tr C) + [ D log(tr C/D) - log det C ]; both terms are ≥ 0.

    Their sum is D log(h1/D) - h2; for C = cI it is D log(1 + E|G|²/(D c)) ≤ E|G|²/c. The mean over
    prompts stands inside the logarithm, which by Jensen's inequality only enlarges the conditional
    form of the theorem. g_t = 0, or, ``centred``, the mean over prompts, which gives a smaller
    bound in expectation; spread about the mean of the same B prompts is divided by B - 1, so that
    few of them can give a larger one.
    """
    updates = as_floats(updates)
    if updates.ndim not in (3, 4) or updates.shape[-1] != updates.shape[-2]:
        raise ValueError(f"updates have shape {updates.shape}: expected [L, e, e] or [B, L, e, e]")
    entries = updates.shape[-1] ** 2
    trace, unevenness = _trace_and_unevenness(noise_cov, updates)
    mean_squares = _mean_squares(updates, centred)
    return entries * jnp.log1p(mean_squares / trace) + unevenness


class Gap(flax.struct.PyTreeNode):
    """Population risk minus empirical risk of a loss clipped to [a, b]."""

    gap: Array  # []
    population: Array  # []
    empirical: Array  # []
    subgaussian: Array  # []  R = (b - a)/2, for ``trajectory_bound``


def measured_gap(
    population_losses: Array,
    demonstration_losses: Array,
    low: Real,
    high: Real,
) -> Gap:
    """Measure the bounded gap on one prompt: mean clipped losses on its population and on it.

    The theorem is about the gap's mean over prompts: average with jax.vmap. The bound adds noise C
    that this W_L does not have, so a gap above it is no contradiction.

    Args:
        population_losses: losses of W_L on fresh pairs of the prompt's task, [m].
        demonstration_losses: losses of the same W_L on the prompt's demonstrations, [n].
        low, high: the interval to which losses are clipped.

    Returns:
        The gap, its two risks, and R.

    Raises:
        ValueError: ``low`` is not below ``high``.
    """
    losses = [as_floats(values) for values in (population_losses, demonstration_losses)]
    chex.assert_rank(losses, 1, custom_message="losses are [m] and [n]; use jax.vmap for a batch")
    if is_concrete(low) and is_concrete(high) and not low < high:
        raise ValueError(f"low = {low}, high = {high}: a loss is clipped to low < high")
    dtype = losses[0].dtype
    low, high = jnp.asarray(low, dtype), jnp.asarray(high, dtype)
    population, empirical = (jnp.clip(loss, low, high).mean() for loss in losses)
    return Gap(population - empirical, population, empirical, (high - low) / 2)


def _mean_squares(updates: Array, centred: bool) -> Array:  # [L]
    """Return E |G_t - g_t|²."""
    batch = updates if updates.ndim == 4 else updates[None]
    if not centred:
        return (batch**2).sum((2, 3)).mean(0)
    if batch.shape[0] < 2:
        raise ValueError("centred needs updates [B, L, e, e] of at least 2 prompts to take a mean")
    departures = batch - batch.mean(0, keepdims=True)
    return (departures**2).sum((0, 2, 3)) / (batch.shape[0] - 1)


def _trace_and_unevenness(noise_cov: ArrayLike, updates: Array) -> tuple[Array, Array]:
    """Return tr C and D log(tr C/D) - log det C, which is 0 for C = cI alone, each [] or [L]."""
    noise_cov = jnp.asarray(noise_cov, updates.dtype)
    num_layers, entries = updates.shape[-3], updates.shape[-1] ** 2
    expected = ((), (entries, entries), (num_layers, entries, entries))
    if noise_cov.shape not in expected:
        raise ValueError(f"noise_cov has shape {noise_cov.shape}: expected one of {expected}")
    if noise_cov.ndim == 0:
        check(noise_cov=noise_cov)
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
        raise ValueError("noise_cov is not positive definite: add a multiple of the identity")
