"""Every matrix taken apart once, so that each edit of it is a mask.

Three ways of the same size: the terms of the SVD, terms along random directions, and the entries by
their magnitude. All are given as a rank r, that is as r of min(p, q) places kept.
"""

from collections.abc import Callable, Iterable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.analyses.clipping import leaves, ranks


@flax.struct.dataclass
class Terms:
    """A matrix as Σ_i values_i left_i right_i, r = min(p, q) terms; an edit keeps some of them."""

    left: Array  # [..., p, r]
    values: Array  # [..., r]
    right: Array  # [..., r, q]

    def kept(self, matrix: Array, keep: Array) -> Array:  # [..., p, q], [..., r] bool
        values = jnp.where(keep, self.values, 0)
        return (self.left * values[..., None, :]) @ self.right

    @property
    def places(self) -> tuple[int, ...]:
        return self.values.shape


@flax.struct.dataclass
class Magnitudes:
    """The place of each entry in the order of |w|, the largest 0.

    With r of min(p, q) places kept, the r (p + q - r) largest entries stay: ``free_numbers``.
    """

    order: Array  # [..., p, q]

    def kept(self, matrix: Array, keep: Array) -> Array:  # [..., p, q], [..., r] bool
        count = free_numbers(*matrix.shape[-2:], keep.sum(-1))
        return jnp.where(self.order < count[..., None, None], matrix, 0)

    @property
    def places(self) -> tuple[int, ...]:
        return (*self.order.shape[:-2], min(self.order.shape[-2:]))


Pieces = dict[str, Terms | Magnitudes]  # by the name of the leaf
Split = Callable[..., Pieces]  # (params, modules, *, per_head=False)


def by_singular_value(
    params: Any, modules: str | Iterable[str], *, per_head: bool = False
) -> Pieces:  # left [..., L, p, r], values [..., L, r], right [..., L, r, q]
    """U, s and Vᵀ of each matrix of some modules. ``values`` is their spectrum."""
    found = leaves.matrices(params, modules, per_head=per_head)
    return {name: Terms(*ranks.svd(matrix)) for name, matrix in found.items()}


def by_random_direction(
    key: Array, params: Any, modules: str | Iterable[str], *, per_head: bool = False
) -> Pieces:
    """W = Σ_i (W o_i) o_iᵀ along a random orthonormal basis o_i, drawn for each matrix.

    Keeping r of them is W O_r O_rᵀ, a random projection to the rank that clipping keeps. The basis
    is on the smaller side, (p < q: O_r O_rᵀ W), so that all terms together are W.
    """
    found = leaves.matrices(params, modules, per_head=per_head)
    keys = jax.random.split(key, len(found))
    return {
        name: _random_terms(key, ranks.checked(matrix))
        for key, (name, matrix) in zip(keys, found.items(), strict=True)
    }


def by_magnitude(params: Any, modules: str | Iterable[str], *, per_head: bool = False) -> Pieces:
    """The entries of each matrix in the order of their magnitude, the earlier first if equal."""

    def order(matrix: Array) -> Array:
        flat = jnp.abs(ranks.checked(matrix)).reshape(*matrix.shape[:-2], -1)
        return jnp.argsort(jnp.argsort(-flat, axis=-1), axis=-1).reshape(matrix.shape)

    found = leaves.matrices(params, modules, per_head=per_head)
    return {name: Magnitudes(order(matrix)) for name, matrix in found.items()}


def free_numbers(p: int, q: int, rank: Any) -> Any:
    """r (p + q - r), the numbers that determine a matrix of rank r: at r = min(p, q) all p q.

    Its two factors hold r (p + q), of which r² are a choice of basis.
    """
    return rank * (p + q - rank)


def _random_terms(key: Array, matrix: Array) -> Terms:
    *lead, p, q = matrix.shape
    side = min(p, q)
    basis = jnp.linalg.qr(jax.random.normal(key, (*lead, side, side), matrix.dtype))[0]
    values = jnp.ones((*lead, side), matrix.dtype)
    turned = basis.swapaxes(-1, -2)
    if p < q:
        return Terms(basis, values, turned @ matrix)
    return Terms(matrix @ basis, values, turned)
