"""The matrices of a model's modules, each taken apart once, so that every edit of it is a mask.

A2 truncates a projection as it stands in the checkpoint, that is with its heads stacked:

    w_q, w_k, w_v  [L, H, k, D]  ->  [L, Hk, D]      w_o  [L, H, D, k]  ->  [L, D, Hk]

Singular vectors then run through all heads. Per head every [k, D] stands for itself, one for each
group where heads share keys and values. The merged w_kq and w_pv [L, H, e, e] are products of one
head's projections and are always taken per head. mlp_in and mlp_gate [L, m, D] and mlp_out
[L, D, m] have no heads. Heads that a layer lacks are stored as zeros and count towards the stacked
matrix: choose per head where layers have different numbers of them. The matrices of any other tree
are chosen by the paths of their leaves, ``layers_*/mlp/kernel`` (``models.leaves``).

Three ways to take a matrix apart, of the same size: the terms of the SVD, terms along random
directions, and the entries by their magnitude. An edit keeps r of the min(p, q) places of each.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.analyses.clipping import ranks
from lsa_lab.models.leaves import matrices


class Terms(flax.struct.PyTreeNode):
    """A matrix as Σ_i values_i left_i right_i, r = min(p, q) terms; an edit keeps some of them."""

    left: Array  # [..., p, r]
    values: Array  # [..., r]
    right: Array  # [..., r, q]

    def kept(self, matrix: Array, keep: Array) -> Array:  # [..., p, q], [..., r] bool
        values = jnp.where(keep, self.values, 0)
        return ((self.left * values[..., None, :]) @ self.right).astype(matrix.dtype)

    def at(self, layer: int) -> "Terms":
        """Those of one layer, without the axis L."""
        return jax.tree.map(lambda leaf: leaf[layer], self)

    @property
    def places(self) -> tuple[int, ...]:
        return self.values.shape


class Magnitudes(flax.struct.PyTreeNode):
    """The place of each entry in the order of |w|, the largest 0.

    With r of min(p, q) places kept, the r (p + q - r) largest entries stay: ``free_numbers``.
    """

    order: Array  # [..., p, q]

    def kept(self, matrix: Array, keep: Array) -> Array:  # [..., p, q], [..., r] bool
        p, q = matrix.shape[-2:]
        count = free_numbers(p, q, keep.sum(-1))
        return jnp.where(self.order < count[..., None, None], matrix, 0)

    def at(self, layer: int) -> "Magnitudes":
        """That of one layer, without the axis L."""
        return Magnitudes(self.order[layer])

    @property
    def places(self) -> tuple[int, ...]:
        return (*self.order.shape[:-2], min(self.order.shape[-2:]))


Pieces = Mapping[str, Terms | Magnitudes]  # by the name of the matrix
Split = Callable[..., Pieces]  # (params, modules, *, per_head=False)
Masks = dict[str, np.ndarray]  # the places kept, [L, r] or [L, H, r], by the name of the matrix


def by_singular_value(
    params: Any, modules: str | Iterable[str], *, per_head: bool = False
) -> dict[str, Terms]:  # left [..., L, p, r], values [..., L, r], right [..., L, r, q]
    """U, s and Vᵀ of each matrix of some modules. ``values`` is their spectrum."""
    whole = matrices(params, modules, per_head=per_head)
    return {name: Terms(*ranks.svd(matrix)) for name, matrix in whole.items()}


def by_random_direction(
    key: Array, params: Any, modules: str | Iterable[str], *, per_head: bool = False
) -> dict[str, Terms]:
    """W = Σ_i (W o_i) o_iᵀ along a random orthonormal basis o_i, drawn for each matrix.

    Keeping r of them is W O_r O_rᵀ, a random projection to the rank that clipping keeps. The basis
    is on the smaller side, (p < q: O_r O_rᵀ W), so that all terms together are W.
    """
    whole = matrices(params, modules, per_head=per_head)
    keys = jax.random.split(key, len(whole))
    return {
        name: _random_terms(key, ranks.checked(matrix))
        for key, (name, matrix) in zip(keys, whole.items(), strict=True)
    }


def by_magnitude(
    params: Any, modules: str | Iterable[str], *, per_head: bool = False
) -> dict[str, Magnitudes]:
    """The entries of each matrix in the order of their magnitude, the earlier first if equal."""

    def order(matrix: Array) -> Array:
        flat = jnp.abs(ranks.checked(matrix)).reshape(*matrix.shape[:-2], -1)
        return jnp.argsort(jnp.argsort(-flat, axis=-1), axis=-1).reshape(matrix.shape)

    whole = matrices(params, modules, per_head=per_head)
    return {name: Magnitudes(order(matrix)) for name, matrix in whole.items()}


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
