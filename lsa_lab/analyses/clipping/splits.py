"""The matrices of a model's modules, each taken apart once, so that every edit of it is a mask.

A2 truncates a projection as it stands in the checkpoint, that is with its heads stacked:

    w_q, w_k, w_v  [L, H, k, D]  ->  [L, Hk, D]      w_o  [L, H, D, k]  ->  [L, D, Hk]

Singular vectors then run through all heads. Per head every [k, D] stands for itself. The merged
w_kq and w_pv [L, H, e, e] are products of one head's projections and are always taken per head.
mlp_in [L, m, D] and mlp_out [L, D, m] have no heads. Heads that a layer lacks are stored as zeros
and count towards the stacked matrix: choose per head where layers have different numbers of them.

Three ways to take a matrix apart, of the same size: the terms of the SVD, terms along random
directions, and the entries by their magnitude. An edit keeps r of the min(p, q) places of each.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.analyses.clipping import ranks

_Heads = Literal["rows", "columns", "apart"]
_HEADS: dict[str, _Heads] = {
    "w_q": "rows",
    "w_k": "rows",
    "w_v": "rows",
    "w_o": "columns",
    "w_kq": "apart",
    "w_pv": "apart",
}
_GROUPS: dict[str, tuple[str, ...]] = {"attention": tuple(_HEADS), "mlp": ("mlp_in", "mlp_out")}
_MATRICES = _GROUPS["attention"] + _GROUPS["mlp"]


class Terms(flax.struct.PyTreeNode):
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


class Magnitudes(flax.struct.PyTreeNode):
    """The place of each entry in the order of |w|, the largest 0.

    With r of min(p, q) places kept, the r (p + q - r) largest entries stay: ``free_numbers``.
    """

    order: Array  # [..., p, q]

    def kept(self, matrix: Array, keep: Array) -> Array:  # [..., p, q], [..., r] bool
        p, q = matrix.shape[-2:]
        count = free_numbers(p, q, keep.sum(-1))
        return jnp.where(self.order < count[..., None, None], matrix, 0)

    @property
    def places(self) -> tuple[int, ...]:
        return (*self.order.shape[:-2], min(self.order.shape[-2:]))


Pieces = Mapping[str, Terms | Magnitudes]  # by the name of the leaf
Split = Callable[..., Pieces]  # (params, modules, *, per_head=False)


def resolve(params: Any, modules: str | Iterable[str]) -> tuple[str, ...]:
    """The names of the matrices that modules such as "w_q", "attention" or "mlp" stand for."""
    present = by_name(params)
    members: dict[str, tuple[str, ...]] = {name: (name,) for name in present}
    for group, names in _GROUPS.items():
        if any(name in present for name in names):
            members[group] = tuple(name for name in names if name in present)
    wanted = (modules,) if isinstance(modules, str) else tuple(modules)
    for module in wanted:
        if module not in members:
            raise ValueError(f"module {module!r}: this model has {', '.join(sorted(members))}")
    if not wanted:
        raise ValueError(f"no module given: this model has {', '.join(sorted(members))}")
    return tuple(dict.fromkeys(name for module in wanted for name in members[module]))


def matrices(
    params: Any, modules: str | Iterable[str], *, per_head: bool = False
) -> dict[str, Array]:  # each [..., L, p, q], per head and for merged weights [..., L, H, p, q]
    """The matrices of some modules; any axes before L, such as runs, are kept."""
    present = by_name(params)
    names = resolve(params, modules)
    if per_head and any(name not in _HEADS for name in names):
        raise ValueError(f"{' and '.join(names)}: only the matrices of attention have heads")
    return {name: present[name] if per_head else _stack(name, present[name]) for name in names}


def replace(params: Any, edited: dict[str, Array]) -> Any:
    """The same pytree with matrices, as ``matrices`` gave them, in the place of their leaves."""

    def leaf_of(path: tuple, leaf: Array) -> Array:
        name = _name(path)
        if name not in edited:
            return leaf
        return _unstack(name, edited[name], leaf.shape)

    return jax.tree_util.tree_map_with_path(leaf_of, params)


def by_name(params: Any) -> dict[str, Array]:
    """The leaves that are matrices of a module, by name."""
    leaves: dict[str, Array] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        name = _name(path)
        if name not in _MATRICES:
            continue
        if name in leaves:
            raise ValueError(f"{name} stands twice in these params; pass the part that is meant")
        leaves[name] = leaf
    return {name: leaves[name] for name in _MATRICES if name in leaves}


def num_axes(name: str) -> int:
    """Axes of a model's leaf: [L, H, p, q], or [L, p, q] without heads."""
    return 4 if name in _HEADS else 3


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


def _name(path: tuple) -> str:
    return jax.tree_util.keystr(path[-1:], simple=True)


def _stack(name: str, leaf: Array) -> Array:
    if _HEADS.get(name) == "rows":
        return leaf.reshape(*leaf.shape[:-3], -1, leaf.shape[-1])
    if _HEADS.get(name) == "columns":
        turned = leaf.swapaxes(-3, -2)  # [..., L, D, H, k]
        return turned.reshape(*turned.shape[:-2], -1)
    return leaf


def _unstack(name: str, matrix: Array, shape: tuple[int, ...]) -> Array:
    if _HEADS.get(name) == "columns" and matrix.ndim < len(shape):
        *lead, num_heads, rows, k = shape
        return matrix.reshape(*lead, rows, num_heads, k).swapaxes(-3, -2)
    return matrix.reshape(shape)
