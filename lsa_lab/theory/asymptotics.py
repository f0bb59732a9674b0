"""What one layer of linear attention costs after pretraining on finitely many prompts and tasks.

N prompts of n demonstrations, with tasks drawn from k fixed ones, fit one layer by (ridgeless)
regression; d grows with alpha = n/d, kappa = k/d and tau = N/d² fixed (Lu, Letey, Zavatone-Veth,
Maiti and Pehlevan 2405.11751; derived here in another way, docs/theory, "Pretraining on finite
data"). Everything is relative to the variance of the signal: w is N(0, I), x is N(0, I/d),
y = w·x + ε with variance ``noise_var`` of ε, and a risk E (y - ŷ)² contains the noise. Who predicts
0 has risk 1 + noise_var.

    >>> new, pretraining = ridgeless_risk(alpha=2.0, kappa=jnp.inf, tau=jnp.inf, noise_var=1.0)
    >>> print(new, pretraining)  # ρ + q/(1 + q), q = (1 + ρ)/α
    1.5 1.5
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_broadcast, check_ratio, check_variance, is_concrete

_HALVINGS = 100  # of an interval of 154 decades: to the last bit


class Risks(NamedTuple):
    """E (y - ŷ)² on tasks never seen, and on those of the pretraining."""

    new_tasks: Array
    pretraining_tasks: Array


class Spectrum(NamedTuple):
    """Means over the eigenvalues λ of (1/k) Σ w wᵀ with d/k = c: none of them is a difference."""

    transform: Array  # E 1/(λ + z)
    square: Array  # E 1/(λ + z)²
    share: Array  # E λ/(λ + z)
    share_slope: Array  # E λ/(λ + z)²
    share_square: Array  # E λ²/(λ + z)²
    left: Array  # E λ²/(λ + z)


def ridgeless_risk(
    alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, noise_var: ArrayLike
) -> Risks:
    """Least squares where tau > 1, the shortest interpolator where tau < 1, infinite at tau = 1.

    Arguments broadcast; kappa = inf is a new task in every prompt, tau = inf is no lack of prompts.
    """
    alpha, kappa, tau, noise_var = _checked(alpha, kappa, tau, noise_var)
    q, c = (1 + noise_var) / alpha, 1 / kappa
    unfitted = jnp.maximum(1 - tau, 0)  # ν M(q + ν) = 1 - τ is a quadratic in ν
    linear = unfitted * (q + 1 - c * jnp.minimum(tau, 1))
    level = _positive_root(jnp.minimum(tau, 1), linear, c * q * unfitted**2)
    return _risks(level, jnp.maximum(1 - 1 / tau, 0), q, c, tau, noise_var)


def ridge_risk(
    alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, noise_var: ArrayLike, penalty: ArrayLike
) -> Risks:
    """The same with a penalty: Γ minimises (1/N) Σ (y - x·Γh)² + (penalty/d) |Γ|²_F."""
    alpha, kappa, tau, noise_var = _checked(alpha, kappa, tau, noise_var)
    if is_concrete(penalty) and not np.all(np.asarray(penalty) > 0):
        raise ValueError(f"penalty = {penalty}: it is positive; without one take ridgeless_risk")
    alpha, kappa, tau, noise_var, penalty = jnp.broadcast_arrays(
        alpha, kappa, tau, noise_var, jnp.asarray(penalty, alpha.dtype)
    )
    return _ridge_risk(alpha, kappa, tau, noise_var, penalty)


@jax.jit
def _ridge_risk(alpha: Array, kappa: Array, tau: Array, noise_var: Array, penalty: Array) -> Risks:
    q, c = (1 + noise_var) / alpha, 1 / kappa

    def excess(level: Array) -> Array:  # grows with the level
        return (level * _spectrum(q + level, c).transform - 1) / tau + 1 - penalty / level

    level = root_of(excess, q)
    # 1 - tr F/τ with F between 0 and 1, also where the level's own interval ends
    missed = jnp.clip(penalty / level, jnp.maximum(1 - 1 / tau, 0), 1)
    return _risks(level, missed, q, c, tau, noise_var)


def root_of(growing: Callable[[Array], Array], like: Array) -> Array:
    """Where a growing function of a positive number is 0, entry by entry, by halving an interval;
    its derivatives are those of the implicit function."""

    def halved(function: Callable[[Array], Array], _: Array) -> Array:
        def halve(_: int, interval: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = interval
            middle = (low + high) / 2
            above = function(jnp.exp(middle)) > 0
            return jnp.where(above, low, middle), jnp.where(above, middle, high)

        widest = 0.25 * float(np.log(jnp.finfo(like.dtype).max))  # squares are finite, too
        bounds = (jnp.full_like(like, -widest), jnp.full_like(like, widest))
        low, high = jax.lax.fori_loop(0, _HALVINGS, halve, bounds)
        return jnp.exp((low + high) / 2)

    def divided(slope: Callable[[Array], Array], value: Array) -> Array:
        return value / slope(jnp.ones_like(value))

    return jax.lax.custom_root(growing, jnp.ones_like(like), halved, divided)


def _risks(level: Array, missed: Array, q: Array, c: Array, tau: Array, noise_var: Array) -> Risks:
    """Both risks where the regression leaves out what is below a level ν of the spectrum R + qI.

    R has the spectrum of Marchenko and Pastur; tr stands for the mean over it (docs/theory,
    "Pretraining on finite data").
    """
    at, own = _spectrum(q + level, c), _spectrum(q, c)
    pretraining = pretraining_risk(level, own, at, missed, q, tau, noise_var)
    bias = (q + level) ** 2 * at.square + q * at.share_square  # tr (1 - Γ)² + q tr Γ²
    noise = pretraining / tau * (1 + q) * (at.share_slope + q * at.square)
    return Risks(noise_var + bias + noise, pretraining)


def pretraining_risk(
    level: Array,
    own: Spectrum,
    at: Spectrum,
    missed: Array,
    q: Array,
    tau: Array,
    noise_var: Array,
    scale: ArrayLike = 1.0,
) -> Array:
    """E_old at a level ν, from the means at q and at q + ν; ``scale`` is that of R.

        E_old (1 - tr F²/τ) = ρ + tr R - tr R²(R + q)⁻¹ + ν² tr R²(R + q)⁻¹(R + q + ν)⁻²

    F = (R + q)(R + q + ν)⁻¹. Where few prompts fit, 1 - tr F²/τ is a small difference; it is what
    is ``missed``, 1 - tr F/τ, and ν tr (R + q)(R + q + ν)⁻²/τ (docs/theory, "Pretraining on finite
    data").
    """
    unexplained = noise_var + q * own.share
    small = q**2 * own.transform + (level**2 - q**2) * at.transform
    small = small - level * (q + level) ** 2 * at.square
    shrunk = jnp.where(level < scale, small, own.left - at.left - level * at.share_square)
    within = at.share_slope + q * at.square  # tr (R + q)(R + q + ν)⁻²
    return (unexplained + shrunk) / (missed + level * within / tau)


def _spectrum(z: Array, c: Array) -> Spectrum:
    """Solves c z M² + (z + 1 - c) M = 1 for M = E 1/(λ + z) (Marchenko and Pastur 1967), and
    c s² - (z + 1 + c) s + 1 = 0 for the share s = 1 - zM."""
    root = jnp.sqrt((z + 1 - c) ** 2 + 4 * c * z)
    above = (2 * (1 + c) * z + (1 - c) ** 2) / (root + z)  # root - z
    transform = 1 / _positive_root(1.0, z + 1 - c, c * z)
    share = 2 / (z + 1 + c + root)
    return Spectrum(
        transform,
        transform * (c * transform + 1) / root,
        share,
        share / root,
        share * above / root,
        share * (1 + c + above) / 2,
    )


def _positive_root(a: ArrayLike, b: Array, c: Array) -> Array:
    """x > 0 with a x² = b x + c: (b + √(b² + 4ac)) / 2a, and where b < 0, of which nothing would be
    left, the same as 2c / (√(b² + 4ac) - b)."""
    root = jnp.sqrt(b**2 + 4 * a * c)
    return jnp.where(b < 0, 2 * c / (root + jnp.abs(b)), (b + root) / (2 * a))


def _checked(*arguments: ArrayLike) -> list[Array]:
    """alpha, kappa, tau and noise_var as arrays of one shape."""
    names = ("alpha", "kappa", "tau", "noise_var")
    check_broadcast(**dict(zip(names, arguments, strict=True)))
    for name, value in zip(names[:3], arguments, strict=False):
        check_ratio(value, name)
    alpha, *_, noise_var = arguments
    if is_concrete(alpha) and not np.all(np.isfinite(np.asarray(alpha))):
        raise ValueError(f"alpha = {alpha}: prompts are finite; take a large number")
    check_variance(noise_var, "noise_var")
    return list(jnp.broadcast_arrays(*(jnp.asarray(value, float) for value in arguments)))
