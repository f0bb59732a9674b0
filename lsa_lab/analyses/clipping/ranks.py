"""One matrix and the rate at which its singular values are cut: rank, truncation, condition.

The decomposition is exact, deterministic and in float64 (float32 without x64); what comes back has
the dtype that went in. Its derivative is not defined where singular values are equal.

    >>> matrix = jnp.diag(jnp.array([4.0, 2.0, 1.0]))
    >>> print(condition_number(matrix), kept_rank(3, 0.3))
    4.0 2
    >>> print(singular_values(truncate(matrix, 0.3)).round(3))
    [4. 2. 0.]
"""

import math
from typing import Any, Literal

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_at_least, check_byte_order, is_concrete
from lsa_lab.models import linear_attention, transformer

DROP: Literal["drop"] = "drop"  # in place of a rate: rank 0, which no rate reaches
Rate = float | Literal["drop"]
# A2's list (docs/theory, "The search for a rate").
RATES = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)


def kept_rank(full_rank: Any, rate: Any) -> Any:
    """max(1, floor((1 - rate) full_rank + 1e-9)), of Python numbers or of arrays.

    A2's int((1 - rate) full_rank) reaches 0 at small sizes and loses one to rounding, as in
    (1 - 0.9) 10 < 1 (docs/theory, "Truncation"). Rates of less than double precision are allowed
    their own ε full_rank in place of 1e-9.
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
    exact = (1 - rates) * full + xp.maximum(1e-9, xp.finfo(rates.dtype).eps * full)
    return xp.maximum(1, xp.floor(exact).astype(int))


def every_rate(full_rank: int) -> tuple[float, ...]:
    """One rate for each rank, from 0 (all of it) to 1 - 1/full_rank (rank 1).

    A2's list reaches few ranks of a small matrix, and some of them several times.
    """
    full_rank = check_at_least(full_rank, "full_rank")
    return tuple(1 - rank / full_rank for rank in range(full_rank, 0, -1))


def truncate(matrix: Array, rate: ArrayLike) -> Array:  # [..., p, q]
    """Σ_{i ≤ r} s_i u_i v_iᵀ, r = kept_rank(min(p, q), rate): the nearest matrix of rank r.

    Nearest in every unitarily invariant norm (Eckart and Young; Mirsky). At rate 0 the matrix comes
    back untouched, bit for bit. Rank 0 is ``drop``.
    """
    if jnp.shape(rate) != ():
        raise ValueError(f"rate has shape {jnp.shape(rate)}: it is one number; vmap over many")
    left, values, right = svd(matrix)
    rank = kept_rank(values.shape[-1], rate)
    cut = jnp.where(jnp.arange(values.shape[-1]) < rank, values, 0)
    return jnp.where(rank == values.shape[-1], matrix, (left * cut[..., None, :]) @ right)


def drop(matrix: Array) -> Array:  # [..., p, q]
    """Rank 0: the matrix of zeros."""
    return jnp.zeros_like(matrix)


def singular_values(matrix: Array) -> Array:  # [..., min(p, q)]
    """s_1 ≥ s_2 ≥ ... of each matrix."""
    return svd(matrix)[1]


def condition_number(matrix: Array) -> Array:  # [...]
    """s_1 / s_min, infinite for a matrix that is singular in its precision, s_min ≤ ε s_1. After
    truncation it says nothing."""
    return condition(singular_values(matrix))


def stable_rank(matrix: Array) -> Array:  # [...]
    """|W|_F² / |W|_2², at most the rank, and 0 for the matrix of zeros."""
    values = singular_values(matrix)
    relative = values / jnp.where(values > 0, values, 1)[..., :1]
    return (relative**2).sum(-1)


def condition(values: Array) -> Array:  # [..., r] -> [...]
    """The largest over the smallest, infinite where rounding cannot tell that from 0."""
    largest, smallest = values[..., 0], values.min(-1)
    singular = smallest <= jnp.finfo(values.dtype).eps * largest  # NaN: NaN
    return jnp.where(singular, jnp.inf, largest / jnp.where(singular, 1, smallest))


def svd(matrix: Array) -> tuple[Array, Array, Array]:  # [..., p, r], [..., r], [..., r, q]
    """U, s and Vᵀ of each matrix, r = min(p, q), computed in float64 where there is one."""
    return _svd(checked(matrix))


@jax.jit
def _svd(matrix: Array) -> tuple[Array, Array, Array]:
    precise = matrix.astype(jax.dtypes.canonicalize_dtype(jnp.float64))
    left, values, right = jnp.linalg.svd(precise, full_matrices=False)
    return left.astype(matrix.dtype), values.astype(matrix.dtype), right.astype(matrix.dtype)


def checked(matrix: Array) -> Array:  # [..., p, q]
    """Refuse what has no singular values."""
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
    return matrix


def check_rate(rate: Any) -> None:
    """Refuse what is not in [0, 1), unless it is still traced."""
    if isinstance(rate, str):
        raise ValueError(f"rate is {rate!r}: a number in [0, 1) was expected here")
    if not is_concrete(rate):
        return
    rates = np.asarray(rate)
    if not np.all((rates >= 0) & (rates < 1)):
        raise ValueError(
            f"rate is {rate}: the share of singular values that is cut lies in [0, 1); for rank 0 "
            f"use drop, or {DROP!r} in a list of rates"
        )


class Factored(flax.struct.PyTreeNode):
    """W = (U s) Vᵀ of the r largest singular values, applied without forming W."""

    left: Array  # [..., p, r]  U s
    right: Array  # [..., r, q]  Vᵀ

    @property
    def num_parameters(self) -> int:
        """r (p + q) for each matrix, all of them stored: more than p q unless r < p q / (p + q)."""
        return self.left.size + self.right.size

    @property
    def dense(self) -> Array:  # [..., p, q]
        return self.left @ self.right


def factor(matrix: Array, rate: float) -> Factored:
    """``truncate`` in factored form; the rate fixes a shape, so it is a number."""
    left, values, right = svd(matrix)
    rank = kept_rank(values.shape[-1], rate)
    return Factored((left * values[..., None, :])[..., :rank], right[..., :rank, :])


def apply(factored: Factored, rows: Array) -> Array:  # [T, q] -> [T, p]
    """W u for each row u, in r (p + q) products where W itself takes p q."""
    return (rows @ factored.right.T) @ factored.left.T


def as_heads(params: linear_attention.Params, rate: float) -> transformer.Params:
    """Linear attention with both merged weights cut at ``rate``, as heads of key width r.

    w_kq = Σ_{i≤r} s_i u_i v_iᵀ is W_Kᵀ W_Q with W_K = √s Uᵀ and W_Q = √s Vᵀ, and w_pv = W_O W_V
    likewise: 4 r e numbers in each head. It runs by ``transformer.forward`` under
    Config(e, L, H, r, kernel="linear"), r = kept_rank(e, rate).
    """
    scores, writes = factor(params.w_kq, rate), factor(params.w_pv, rate)
    w_k, w_q = _balanced(scores)
    w_o, w_v = _balanced(writes)
    return transformer.Params(w_q=w_q, w_k=w_k.swapaxes(-1, -2), w_v=w_v, w_o=w_o)


def _balanced(factored: Factored) -> tuple[Array, Array]:  # [..., p, r], [..., r, q]
    """Both factors scaled by √s; a singular value is the length of a column of U s."""
    roots = jnp.sqrt(jnp.linalg.norm(factored.left, axis=-2))
    safe = jnp.where(roots > 0, roots, 1)
    return factored.left / safe[..., None, :], factored.right * roots[..., None]
