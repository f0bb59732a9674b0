"""Numbers brought near 1 by a power of two: no bit is lost, and squares keep all of theirs."""

import jax
import jax.numpy as jnp
from jax import Array


def near_one(values: Array, axis: int | None = None) -> tuple[Array, Array]:
    """(v / 2^k, k), the largest of |v| / 2^k along ``axis`` in [1/2, 1); k is 0 where all are 0.

    The axis stays, of length 1, in k: ``jnp.ldexp`` undoes it. k has no derivative.
    """
    largest = jnp.abs(values).max(axis, keepdims=True)
    exponents = jnp.frexp(jax.lax.stop_gradient(largest))[1]
    return jnp.ldexp(values, jnp.broadcast_to(-exponents, values.shape)), exponents
