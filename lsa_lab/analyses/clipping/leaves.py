"""Which matrices a module has: leaves of a parameter pytree, found by name.

A2 truncates a projection as it stands in the checkpoint, that is with its heads stacked:

    w_q, w_k, w_v  [L, H, k, D]  ->  [L, Hk, D]      w_o  [L, H, D, k]  ->  [L, D, Hk]

Singular vectors then run through all heads. Per head every [k, D] stands for itself. The merged
w_kq and w_pv [L, H, e, e] are products of one head's projections and are always taken per head.
mlp_in [L, m, D] and mlp_out [L, D, m] have no heads. Heads that a layer lacks are stored as zeros
and count towards the stacked matrix: choose per head where layers have different numbers of them.
"""

from collections.abc import Iterable
from typing import Any, Literal

import jax
from jax import Array

_Heads = Literal["rows", "columns", "apart"]
_HEADS: dict[str, _Heads] = {
    "w_q": "rows",
    "w_k": "rows",
    "w_v": "rows",
    "w_o": "columns",
    "w_kq": "apart",
    "w_pv": "apart",
}
_GROUPS = {"attention": tuple(_HEADS), "mlp": ("mlp_in", "mlp_out")}
_MATRICES = _GROUPS["attention"] + _GROUPS["mlp"]


def resolve(params: Any, modules: str | Iterable[str]) -> tuple[str, ...]:
    """The names of the matrices that modules such as "w_q", "attention" or "mlp" stand for."""
    present = by_name(params)
    known = {name: (name,) for name in present}
    for group, members in _GROUPS.items():
        if any(name in present for name in members):
            known[group] = tuple(name for name in members if name in present)
    asked = (modules,) if isinstance(modules, str) else tuple(modules)
    for module in asked:
        if module not in known:
            raise ValueError(f"module {module!r}: this model has {', '.join(sorted(known))}")
    if not asked:
        raise ValueError(f"no module given: this model has {', '.join(sorted(known))}")
    return tuple(dict.fromkeys(name for module in asked for name in known[module]))


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
    found: dict[str, Array] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        name = _name(path)
        if name not in _MATRICES:
            continue
        if name in found:
            raise ValueError(f"{name} stands twice in these params; pass the part that is meant")
        found[name] = leaf
    return {name: found[name] for name in _MATRICES if name in found}


def num_axes(name: str) -> int:
    """Axes of a model's leaf: [L, H, p, q], or [L, p, q] without heads."""
    return 4 if name in _HEADS else 3


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
