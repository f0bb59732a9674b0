"""The weight matrices of a parameter tree by the path of their leaf, and edited ones put back.

A path is the keys of a leaf joined by "/", over dicts, lists, dataclasses and ``nnx.State``. Paths
that differ in one number are the layers of one name, in the order of the number:

    w_q [L, H, k, D], mlp_in [L, m, D]            this library, layers on the first axis
    layers_*/mlp/kernel [p, q]                    Flax, a leaf for each layer
    blocks/mlp/kernel [L, p, q]                   Flax, layers on the first axis
    layers_*/attn/query/kernel [D, H, k]          heads of query, key and value, ...
    layers_*/attn/out/kernel [H, k, D]            ... and of out; [L, D, H, k] if stacked

Leaves with other axes, biases and scales are no matrices and are left out.

    >>> params = {"layers_0": {"mlp": jnp.eye(2)}, "layers_1": {"mlp": 2 * jnp.eye(2)}}
    >>> {name: matrix.shape for name, matrix in matrices(params).items()}
    {'layers_*/mlp': (2, 2, 2)}
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

# Kinds of leaves with heads: the axis of a head's matrix along which heads are joined, 0 for none.
_LIBRARY_HEADS = {"w_q": -2, "w_k": -2, "w_v": -2, "w_o": -1, "w_kq": 0, "w_pv": 0}
_FLAX_HEADS = {"query": -1, "key": -1, "value": -1, "out": -2}
_HEADS = _LIBRARY_HEADS | _FLAX_HEADS
_MODULES = {"attention": (*_LIBRARY_HEADS,), "mlp": ("mlp_in", "mlp_gate", "mlp_out")}
_LIBRARY = _MODULES["attention"] + _MODULES["mlp"]
_LISTED = 12  # names in an error message


def matrices(
    params: Any, modules: str | Iterable[str] | None = None, *, per_head: bool = False
) -> dict[str, Array]:
    """Return the matrices of one model by name.

    Args:
        params: any pytree; for several runs use ``jax.vmap``.
        modules: patterns of paths with shell wildcards, matched from the right
            ("attn/out/kernel"), or "attention" and "mlp" of this library; None for all.
        per_head: keep the matrices of heads apart; else they are joined into one, [L, H k, D] for
            w_q and [L, D, H k] for w_o, as A2 truncates them. w_kq and w_pv stay apart.

    They are [L, p, q] for each name, or [L, H, p, q] where heads are apart. Raises ValueError if a
    module matches no matrix, or one layer of several, or if a matrix has no heads to keep apart.
    """
    leaves = _leaves_by_path(params)
    groups = _select(_group_layers(leaves), modules)
    stacks = {name: _stack(leaves, paths, per_head) for name, paths in groups.items()}
    headless = [name for name, stack in stacks.items() if per_head and stack.ndim == 3]
    if headless:
        raise ValueError(f"{', '.join(headless)}: these matrices have no heads; use per_head=False")
    return stacks


def replace_matrices(params: Any, edited: Mapping[str, Array]) -> Any:
    """Return ``params`` with the matrices of ``edited``, shaped as ``matrices`` returns them.

    Raises ValueError for an unknown name.
    """
    leaves = _leaves_by_path(params)
    groups = _select(_group_layers(leaves), edited) if edited else {}
    old = {path: jnp.asarray(leaves[path]) for paths in groups.values() for path in paths}

    def read(leaves: dict[str, Array]) -> dict[str, Array]:
        return {n: _stack(leaves, paths, edited[n].ndim == 4) for n, paths in groups.items()}

    # ``read`` moves every entry to one place: its transpose is its inverse.
    new = {name: jnp.asarray(edited[name], old[paths[0]].dtype) for name, paths in groups.items()}
    (moved,) = jax.linear_transpose(read, old)(new)
    values = [moved.get(path, leaf) for path, leaf in leaves.items()]
    return jax.tree.unflatten(jax.tree.structure(params), values)


def _leaves_by_path(params: Any) -> dict[str, Any]:
    """Return leaves by path, without the key ``value`` that ``nnx.State`` adds to each."""

    def join(path: tuple) -> str:
        inner = path[:-1] if path[1:] and path[-1] == jax.tree_util.GetAttrKey("value") else path
        return jax.tree_util.keystr(inner, simple=True, separator="/").replace(".", "/")

    return {join(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(params)}


def _group_layers(leaves: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the paths of each name: one for each layer, or one that holds all layers."""
    paths = [path for path in leaves if path.rpartition("/")[2] in _LIBRARY] or list(leaves)
    starred = {path: _star_numbers(path) for path in paths}
    counts = Counter((jnp.shape(leaves[path]), n) for path in paths for n in starred[path])
    groups: dict[str, list[str]] = {}
    for path in sorted(paths, key=_number_key):
        shared = [name for name in starred[path] if counts[jnp.shape(leaves[path]), name] > 1]
        groups.setdefault(next(iter(shared), path), []).append(path)
    return {
        name: members
        for name, members in groups.items()
        if _is_matrix(members, jnp.ndim(leaves[members[0]]))
    }


def _star_numbers(path: str) -> list[str]:
    """Return the path with each number at the end of a key replaced by "*", one at a time."""
    numbers = re.finditer(r"\d+(?=/|$)", path)
    return [f"{path[: number.start()]}*{path[number.end() :]}" for number in numbers]


def _number_key(path: str) -> list[Any]:
    """Return a sort key under which layers_2 stands before layers_10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path)]


def _kind(path: str) -> str:
    """Return the key that says whether a leaf has heads."""
    *parents, last = path.split("/")
    return parents[-1] if last == "kernel" and parents else last


def _is_matrix(paths: list[str], ndim: int) -> bool:
    """Return whether the axes of the leaves are those of one matrix, or of heads, in each layer."""
    kind = _kind(paths[0])
    if paths[0].endswith(("bias", "scale")):
        return False
    if ndim == 2:
        return len(paths) > 1 or kind not in _LIBRARY
    return ndim == 3 + (kind in _HEADS) - (len(paths) > 1)


def _stack(leaves: Mapping[str, Any], paths: list[str], per_head: bool) -> Array:
    """Return [L, p, q] or [L, H, p, q] from the leaves of one name."""
    parts = [jnp.asarray(leaves[path]) for path in paths]
    stack = jnp.stack(parts) if len(parts) > 1 or parts[0].ndim == 2 else parts[0]
    kind = _kind(paths[0])
    if stack.ndim == 3:
        return stack
    if kind in ("query", "key", "value"):
        stack = stack.swapaxes(1, 2)  # [L, D, H, k] -> [L, H, D, k]
    axis = _HEADS[kind]
    if per_head or axis == 0:
        return stack
    num_layers, num_heads, p, q = stack.shape
    if axis == -2:
        return stack.reshape(num_layers, num_heads * p, q)
    return stack.swapaxes(1, 2).reshape(num_layers, p, num_heads * q)


def _select(
    groups: dict[str, list[str]], modules: str | Iterable[str] | None
) -> dict[str, list[str]]:
    """Return the groups that are named or whose paths match a pattern, in the order of these."""
    wanted = groups if modules is None else (modules,) if isinstance(modules, str) else modules
    names: list[str] = []
    for module in wanted:
        patterns = _MODULES.get(module, (module.replace(".", "/"),))
        matched = [name for p in patterns for name in groups if _matches(groups[name], p)]
        if not matched and module not in groups:
            close = difflib.get_close_matches(module, groups, _LISTED, 0.0)
            raise ValueError(
                f"no matrices are called {module!r}: this model has {', '.join(close) or 'none'}; "
                "if its leaves have an axis of runs, use jax.vmap"
            )
        names += [module] if module in groups else matched
    return {name: groups[name] for name in names}


def _matches(paths: list[str], pattern: str) -> bool:
    return all(PurePosixPath(path).match(pattern) for path in paths)
