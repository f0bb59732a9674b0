"""The rank, the truncation and the conditioning of one matrix.

Decompositions are computed in float64 (float32 without x64) and returned in the dtype of the
matrix. They have no derivative where singular values are equal.

    >>> matrix = jnp.diag(jnp.array([4.0, 2.0, 1.0]))
    >>> print(condition_number(matrix), kept_rank(3, 0.3))
    4.0 2
    >>> print(singular_values(truncate(matrix, 0.3)).round(3))
    [4. 2. 0.]
"""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_at_least, check_byte_order, is_concrete

DROP: Literal["drop"] = "drop"  # in place of a rate: rank 0, which no rate reaches
Rate = float | Literal["drop"]
# A2's list (docs/theory, "The search for a rate").
RATES = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)


def kept_rank(full_rank: Any, rate: Any) -> Any:
    """Return max(1, floor((1 - rate) full_rank + 1e-9)), of Python numbers or of arrays.

    A2's int((1 - rate) full_rank) reaches 0 at small sizes and loses one to rounding, as in
    (1 - 0.9) 10 < 1 (docs/theory, "Truncation"). Rates of less than double precision have a
    margin of ε full_rank in place of 1e-9.
    """
    check_rate(rate)
    if is_concrete(full_rank) and not np.all(np.asarray(full_rank) >= 1):
        raise ValueError(f"full_rank is {full_rank}: a matrix has at least one singular value")
    if isinstance(full_rank, int) and isinstance(rate, int | float):
        return max(1, math.floor((1 - rate) * full_rank + 1e-9))
    xp = jnp if isinstance(full_rank, Array) or isinstance(rate, Array) else np
    rates = xp.asarray(rate)
    rates = rates.astype(float) if xp.issubdtype(rates.dtype, xp.integer) else rates
    full = xp.asarray(full_rank).astype(rates.dtype)
    ranks = (1 - rates) * full + xp.maximum(1e-9, xp.finfo(rates.dtype).eps * full)
    return xp.maximum(1, xp.floor(ranks).astype(int))


def every_rate(full_rank: int) -> tuple[float, ...]:
    """Return one rate for each rank, from 0 (all of it) to 1 - 1/full_rank (rank 1).

    A2's list reaches few ranks of a small matrix, and some of them several times.
    """
    full_rank = check_at_least(full_rank, "full_rank")
    return tuple(1 - rank / full_rank for rank in range(full_rank, 0, -1))


def truncate(matrix: Array, rate: ArrayLike) -> Array:  # [..., p, q]
    """Return Σ_{i ≤ r} s_i u_i v_iᵀ, r = kept_rank(min(p, q), rate): the nearest matrix of rank r.

    It is nearest in every unitarily invariant norm (Eckart and Young; Mirsky). Rate 0 returns the
    matrix bit for bit.
    """
    if jnp.shape(rate) != ():
        raise ValueError(f"rate has shape {jnp.shape(rate)}: it is one number; vmap over many")
    left, values, right = svd(matrix)
    rank = kept_rank(values.shape[-1], rate)
    kept = jnp.where(jnp.arange(values.shape[-1]) < rank, values, 0)
    return jnp.where(rank == values.shape[-1], matrix, (left * kept[..., None, :]) @ right)


def singular_values(matrix: Array) -> Array:  # [..., min(p, q)]
    """Return s_1 ≥ s_2 ≥ ... of each matrix."""
    return svd(matrix)[1]


def condition_number(matrix: Array) -> Array:  # [...]
    """Return s_1 / s_min, infinite where s_min ≤ ε s_1, as after a truncation."""
    values = singular_values(matrix)
    largest, smallest = values[..., 0], values[..., -1]
    is_singular = smallest <= jnp.finfo(values.dtype).eps * largest  # NaN: NaN
    return jnp.where(is_singular, jnp.inf, largest / jnp.where(is_singular, 1, smallest))


def svd(matrix: Array) -> tuple[Array, Array, Array]:  # [..., p, r], [..., r], [..., r, q]
    """Return U, s and Vᵀ of each matrix, r = min(p, q).

    Raises ValueError for anything but floating matrices, and for NaN and infinity.
    """
    check_byte_order(matrix, "matrix")
    matrix = jnp.asarray(matrix)
    if matrix.ndim < 2 or not jnp.issubdtype(matrix.dtype, jnp.floating):
        raise ValueError(
            f"expected floating matrices [..., p, q]; this has shape {matrix.shape} and dtype "
            f"{matrix.dtype}"
        )
    if is_concrete(matrix) and not jnp.isfinite(matrix).all():
        raise ValueError(
            "the matrix holds NaN or infinity and has no singular values: did its training diverge?"
        )
    return _svd(matrix)


@jax.jit
def _svd(matrix: Array) -> tuple[Array, Array, Array]:
    precise = matrix.astype(jax.dtypes.canonicalize_dtype(jnp.float64))
    left, values, right = jnp.linalg.svd(precise, full_matrices=False)
    return left.astype(matrix.dtype), values.astype(matrix.dtype), right.astype(matrix.dtype)


def check_rate(rate: Any) -> None:
    """Raise ValueError for a rate outside [0, 1), unless it is traced."""
    if isinstance(rate, str):
        raise ValueError(f"rate is {rate!r}: a number in [0, 1) was expected here")
    if not is_concrete(rate):
        return
    rates = np.asarray(rate)
    if not np.all((rates >= 0) & (rates < 1)):
        raise ValueError(
            f"rate is {rate}: the share of singular values that is cut lies in [0, 1); for rank 0 "
            f"use {DROP!r} in a list of rates"
        )
