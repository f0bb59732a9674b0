"""Scaling by powers of two, so that squares neither overflow nor underflow."""

import jax
import jax.numpy as jnp
from jax import Array


def scale_near_one(values: Array, axis: int | tuple[int, ...] | None = None) -> tuple[Array, Array]:
    """Return (v / 2^k, k) with the largest of |v| / 2^k along ``axis`` in [1/2, 1), k = 0 for 0.

    No bit is lost. k keeps the axis, with length 1, and has no derivative; ``scale_by_power``
    is the inverse.
    """
    largest = jnp.abs(values).max(axis, keepdims=True)
    exponents = jnp.frexp(jax.lax.stop_gradient(largest))[1]
    return scale_by_power(values, -exponents), exponents


def scale_by_power(values: Array, exponents: Array) -> Array:
    """Return 2^k v, both of one rank; exact unless it overflows.

    It is a product, whose slope is 2^k at 0 too, where that of ``jnp.ldexp`` is 1.
    """
    half = exponents // 2  # 2^k itself may overflow
    one = jnp.ones_like(exponents, jnp.result_type(values))
    return values * jnp.ldexp(one, half) * jnp.ldexp(one, exponents - half)


def length(values: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """Return |v| along ``axis``: no square over- or underflows, and the slope at 0 is 0."""
    scaled, exponents = scale_near_one(values, axis)
    square = jnp.sum(scaled**2, axis, keepdims=True)
    # Two selections: the derivative of the square root at 0 must not be formed.
    root = jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))  # NaN: NaN
    return scale_by_power(root, exponents).squeeze(axis)
