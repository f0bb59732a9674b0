"""Means over limiting spectra, and roots with the derivatives of implicit functions."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

_HALVINGS = 100  # of an interval of 154 decades: to the last bit


class Spectrum(NamedTuple):
    """Means over the eigenvalues λ of R = (1/k) Σ w wᵀ, d/k = c, each without cancellation."""

    transform: Array  # E 1/(λ + z)
    square: Array  # E 1/(λ + z)²
    share: Array  # E λ/(λ + z)
    share_slope: Array  # E λ/(λ + z)²
    share_square: Array  # E λ²/(λ + z)²
    left: Array  # E λ²/(λ + z)


def marchenko_pastur(z: Array, c: Array) -> Spectrum:
    """Return the means for w ~ N(0, I), from the transform M = E 1/(λ + z).

    c z M² + (z + 1 - c) M = 1 (Marchenko and Pastur 1967), and c s² - (z + 1 + c) s + 1 = 0 for the
    share s = 1 - zM.
    """
    root = jnp.sqrt((z + 1 - c) ** 2 + 4 * c * z)
    above = (2 * (1 + c) * z + (1 - c) ** 2) / (root + z)  # root - z
    transform = 1 / positive_root(1.0, z + 1 - c, c * z)
    share = 2 / (z + 1 + c + root)
    return Spectrum(
        transform,
        transform * (c * transform + 1) / root,
        share,
        share / root,
        share * above / root,
        share * (1 + c + above) / 2,
    )


def correlated_spectrum(z: Array, variances: Array, c: Array) -> Spectrum:  # of [d]
    """Return the means for w ~ N(0, C), [d], along the eigenvectors of C.

    ``variances`` [d] are its eigenvalues λ: E 1/(R + z) = 1/(s λ + z) with
    s = 1 - c mean s λ/(s λ + z); the other means follow by derivatives in z.
    """

    def excess(s: Array) -> Array:
        return s - 1 + c * (s * variances / (s * variances + z)).mean()

    s = solve_increasing(excess, z)
    at = 1 / (s * variances + z)
    slope = c * (variances * at**2).mean()
    straight = s / (1 + z * slope)  # s - z s'
    slope = slope * straight  # s'
    share = s * variances * at
    return Spectrum(
        at,
        (slope * variances + 1) * at**2,
        share,
        straight * variances * at**2,
        variances * (s**2 * variances + z**2 * slope) * at**2,
        variances * (s * variances + z * c * share.mean()) * at,
    )


def positive_root(a: ArrayLike, b: Array, c: Array) -> Array:
    """Return x > 0 with a x² = b x + c: (b + √(b² + 4ac)) / 2a, or for b < 0, where the sum would
    lose all digits, the equal 2c / (√(b² + 4ac) - b)."""
    root = jnp.sqrt(b**2 + 4 * a * c)
    return jnp.where(b < 0, 2 * c / (root + jnp.abs(b)), (b + root) / (2 * a))


def solve_increasing(function: Callable[[Array], Array], like: Array) -> Array:
    """Return the positive zeros of an increasing function, entry by entry, by halving an interval.

    Their derivatives are those of the implicit function. ``like`` has their shape and dtype.
    """

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

    return jax.lax.custom_root(function, jnp.ones_like(like), halved, divided)
