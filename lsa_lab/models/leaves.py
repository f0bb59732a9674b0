"""The matrices of a parameter tree, chosen by path: this library's, Flax's, those of any pytree.

A module is a pattern of paths (``leaf_paths``) and, after a colon, the axes of its leaves
(``leaf_axes``). Where they are not said,

    layers_*/mlp/kernel [p, q]               pq    paths that differ in one number are the layers
    blocks/mlp/kernel [L, p, q]              Lpq   a leaf for itself holds them on its first axis
    layers_*/attn/query/kernel [D, H, k]     DHk   Flax's heads: of query, key and value,
    layers_*/attn/out/kernel [H, k, D]       HkD   and of out; LDHk, LHkD where layers are stacked

and all else is refused: a single matrix, too, belongs to no layer. Layers count from 0 in the order
of their numbers. The names of this library are patterns as well: W_K and W_V have groups G in place
of heads where several heads share theirs. Flax's kernels are [in, out] where this library has
[out, in]: a matrix and its transpose have the same singular values.

    >>> tree = {"layers_0": {"mlp": jnp.eye(2)}, "layers_1": {"mlp": 2 * jnp.eye(2)}}
    >>> print(resolve(tree, "layers_*/mlp"))
    ('layers_{0,1}/mlp:pq',)
    >>> print(matrices(tree, "mlp")["layers_{0,1}/mlp:pq"][1])
    [[2. 0.]
     [0. 2.]]
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.models.blocks import OUTSIDE_LAYERS
from lsa_lab.models.leaf_axes import LeafAxes
from lsa_lab.models.leaf_paths import by_path, ending, expanded, families, joined, matches

_HOUSE = {
    "w_q": "LHkD",
    "w_k": "LHkD",
    "w_v": "LHkD",
    "w_o": "LHDk",
    "w_kq": "LHpq",
    "w_pv": "LHpq",
    "mlp_in": "LmD",
    "mlp_gate": "LmD",
    "mlp_out": "LDm",
}
_PROJECTIONS = ("w_q", "w_k", "w_v", "w_o")
_SHARED = ("w_k", "w_v")  # "LGkD" where there are fewer of them than of W_Q
_MODULES = {
    "attention": (*_PROJECTIONS, "w_kq", "w_pv"),
    "mlp": ("mlp_in", "mlp_gate", "mlp_out"),
}
# Biases and gates [L, H, k] have the axes of matrices and are vectors of a head.
_NO_MATRICES = (
    *OUTSIDE_LAYERS,
    *("b_q", "b_k", "b_v", "b_step", "b_gate", "b_write", "w_step", "w_gate", "w_write"),
)
_FLAX = {"query": "DHk", "key": "DHk", "value": "DHk", "out": "HkD"}
_LISTED = 12  # paths that a refusal names


@dataclass(frozen=True)
class Stack:
    """One matrix for each layer: the leaves that hold them, and what their axes are."""

    name: str  # stands for these leaves alone
    paths: tuple[str, ...]  # one for each layer, or the one that holds them all
    axes: LeafAxes


def resolve(params: Any, modules: str | Iterable[str]) -> tuple[str, ...]:
    """The names of the matrices that modules such as ``w_q``, ``mlp`` or ``*/mlp/kernel`` mean.

    A name says its leaves and their axes in full; it is a module too, of many such models stacked.
    """
    return tuple(stack.name for stack in stacks(params, modules))


def matrices(
    params: Any, modules: str | Iterable[str], *, per_head: bool = False
) -> dict[
    str, Array
]:  # each [..., L, p, q], per head and where heads stand apart [..., L, H, p, q]
    """The matrices of some modules; axes before L, such as runs, stay where the axes are said."""
    leaves, chosen = by_path(params), stacks(params, modules)
    headless = [stack.name for stack in chosen if not stack.axes.has_heads]
    if per_head and headless:
        raise ValueError(
            f"{' and '.join(headless)}: only the matrices of attention have heads; say how many "
            "where they are folded into an axis, as in 'attn/out/kernel:(4k)D'"
        )
    return {s.name: s.axes.stacked([leaves[p] for p in s.paths], per_head) for s in chosen}


def matrix(params: Any, name: str, layer: int, *, per_head: bool = False) -> Array:  # [..., p, q]
    """One layer's matrix of those that a name from ``resolve`` means, per head [..., H, p, q]."""
    leaves, (stack,) = by_path(params), stacks(params, name)
    own = stack.axes.of_layer([leaves[path] for path in stack.paths], layer)
    lead = -4 if stack.axes.stands_apart(per_head) else -3
    return jnp.squeeze(stack.axes.stacked(own, per_head), lead)


def replace(params: Any, edited: Mapping[str, Array], first: int = 0) -> Any:
    """The same pytree with matrices, as ``matrices`` gave them, in the place of their leaves.

    Layers before ``first`` stay as they are: what is computed of them alone does not depend on
    ``edited``, and a compiler can see it.
    """
    leaves = by_path(params)
    edits: dict[str, Array] = {}
    for stack in stacks(params, edited) if edited else ():
        own = [leaves[path] for path in stack.paths]
        parts = stack.axes.unstacked(edited[stack.name], own)
        edits |= zip(stack.paths, stack.axes.from_layer(first, own, parts), strict=True)
    tree = jax.tree.structure(params)
    return jax.tree.unflatten(tree, [edits.get(path, leaf) for path, leaf in leaves.items()])


def stacks(params: Any, modules: str | Iterable[str]) -> tuple[Stack, ...]:
    """What modules stand for, each once, all with the same number of layers."""
    leaves = by_path(params)
    wanted = (modules,) if isinstance(modules, str) else tuple(modules)
    if not wanted:
        raise ValueError(f"no module given: this model has {_available(leaves)}")
    every = {stack.name: stack for module in wanted for stack in _stacks(leaves, module)}
    uses = Counter(path for stack in every.values() for path in stack.paths)
    twice = [path for path, count in uses.items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]} belongs to two of the modules {wanted}: name it in one only")
    counts = {name: _num_layers(leaves, stack) for name, stack in every.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ValueError(f"modules with different numbers of layers ({listed}): choose fewer")
    return tuple(every.values())


def _stacks(leaves: Mapping[str, Any], module: str) -> list[Stack]:
    present = [name for name in _MODULES.get(module, (module,)) if ending(leaves, name)]
    if present and set(present) <= set(_HOUSE):
        return [_of_house(leaves, name) for name in present]
    if module in _NO_MATRICES and any(ending(leaves, name) for name in _HOUSE):
        raise ValueError(
            f"module {module!r} is no matrix of a layer: this model has {_available(leaves)}"
        )
    pattern, _, axes = module.replace(".", "/").partition(":")
    if "{" in pattern:  # the name of a stack
        return [Stack(module, expanded(pattern), LeafAxes(axes))]
    matched = [pattern] if pattern in leaves else [p for p in leaves if matches(p, pattern)]
    if not matched:
        raise ValueError(f"module {module!r}: this model has {_available(leaves, pattern)}")
    single = LeafAxes(axes).has_layers
    layers = [(path,) for path in matched] if single else families(matched, pattern)
    return [_stack(leaves, module, paths, axes) for paths in layers]


def _of_house(leaves: Mapping[str, Any], name: str) -> Stack:
    path, *others = ending(leaves, name)
    axes = _HOUSE[name]
    if others:
        own = axes[1:] if jnp.ndim(leaves[path]) == len(axes) - 1 else "pq"
        raise ValueError(
            f"{name} stands twice in these params, in {path} and {others[0]}: if they are layers, "
            f"say the axes of each, as in '{name}:{own}'; if they are models, pass one of them"
        )
    if jnp.ndim(leaves[path]) < len(axes):
        raise ValueError(
            f"module {name!r} has shape {jnp.shape(leaves[path])}: in this library it is "
            f"[{', '.join(axes)}], after the axis of runs if there is one; say the axes of another "
            f"model's, as in '{name}:pq'"
        )
    _check_sizes(leaves, name)
    counts = [jnp.shape(leaves[each])[-3:-2] for each in (path, *ending(leaves, "w_q"))]
    shared = name in _SHARED and counts[0] < max(counts)
    return Stack(name, (path,), LeafAxes(axes.replace("H", "G") if shared else axes))


def _check_sizes(leaves: Mapping[str, Any], name: str) -> None:
    """Raise unless L, H and D mean the same sizes in W_Q, W_K, W_V and W_O: a name alone does not
    say that a leaf is this library's."""
    sizes: dict[tuple[str, bool], tuple[str, int]] = {}
    for other in _PROJECTIONS if name in _PROJECTIONS else ():
        paths = ending(leaves, other)
        if len(paths) != 1 or jnp.ndim(leaves[paths[0]]) < 4:
            continue
        shape = jnp.shape(leaves[paths[0]])[-4:]
        for letter, size in zip(_HOUSE[other], shape, strict=True):
            of_groups = letter == "H" and other in _SHARED
            first, expected = sizes.setdefault((letter, of_groups), (other, size))
            if size != expected and letter != "k":  # a token may write several keys
                raise ValueError(
                    f"{first} has {letter} = {expected} and {other} {size}, if their axes are "
                    f"[{', '.join(_HOUSE[first])}] and [{', '.join(_HOUSE[other])}] as in this "
                    f"library: say the axes of another model's, as in '{name}:LDHk'"
                )


def check_one_model(params: Any, modules: str | Iterable[str]) -> None:
    """Raise where the matrices of some modules have axes before L, such as one of runs."""
    leaves = by_path(params)
    for stack in stacks(params, modules):
        shape = jnp.shape(leaves[stack.paths[0]])
        if lead := stack.axes.lead(shape):
            raise ValueError(
                f"{stack.name} has shape {shape}, with {lead} before the axes of one model, as "
                "those of several runs have: take one, jax.tree.map(lambda leaf: leaf[0], params), "
                "or jax.vmap over them"
            )


def _stack(leaves: Mapping[str, Any], module: str, paths: tuple[str, ...], axes: str) -> Stack:
    name = joined(paths)
    shape, *others = sorted({jnp.shape(leaves[path]) for path in paths})
    if others:
        raise ValueError(
            f"module {module!r}: the layers of {name} have shapes {shape} and {others[0]}; choose "
            "layers of one shape"
        )
    letters = axes or _axes(paths, len(shape))
    if letters is None:
        raise ValueError(
            f"module {module!r} matches {name} of shape {shape}, not plainly one matrix for each "
            f"layer: name other leaves, or say its axes, as in '{module}:pq' (Lpq, DHk, ...)"
        )
    fault = LeafAxes(letters).fault(shape)
    if fault:
        raise ValueError(f"module {module!r}: {fault}")
    return Stack(f"{name}:{letters}", paths, LeafAxes(letters))


def _axes(paths: tuple[str, ...], num_axes: int) -> str | None:
    """The axes by the rules above, where one of them applies."""
    flax = _FLAX.get((paths[0].split("/")[-2:-1] or [""])[0])
    if len(paths) > 1:
        return {2: "pq", 3: flax}.get(num_axes)
    if num_axes == 3:
        return None if flax else "Lpq"
    return f"L{flax}" if flax and num_axes == 4 else None


def _num_layers(leaves: Mapping[str, Any], stack: Stack) -> int:
    if stack.axes.has_layers:
        return stack.axes.num_layers(jnp.shape(leaves[stack.paths[0]]))
    return len(stack.paths)


def _available(leaves: Mapping[str, Any], pattern: str = "") -> str:
    """The modules that there are: this library's names, or else paths, the nearest first."""
    house = [name for name in _HOUSE if ending(leaves, name)]
    if house:
        modules = [module for module, names in _MODULES.items() if {*names} & {*house}]
        return ", ".join(sorted(house + modules))
    wide = [path for path, leaf in leaves.items() if jnp.ndim(leaf) > 1]
    paths = list(dict.fromkeys(re.sub(r"\d+(?=/|$)", "*", path, count=1) for path in wide))
    nearest = difflib.get_close_matches(pattern, paths, _LISTED, 0.0)
    more = f" and {len(paths) - _LISTED} more" if len(paths) > _LISTED else ""
    return ", ".join(nearest or paths[:_LISTED]) + more if paths else "no matrices"
