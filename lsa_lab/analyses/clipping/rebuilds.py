"""Params with only some places of their matrices kept: the whole model, or the layers edited."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.analyses.clipping.splits import Magnitudes, Masks, Pieces, Terms
from lsa_lab.models import leaves
from lsa_lab.models.blocks import OUTSIDE_LAYERS


@functools.partial(jax.jit, static_argnames="first")
def rebuild(params: Any, pieces: Pieces, keep: dict[str, Array], first: int = 0) -> Any:
    """The params of one model with only the places that are kept; what keeps all keeps its bits.

    Layers before ``first`` are those of ``params``, whatever ``keep`` says (``leaves.replace``).
    """
    edited = {}
    for name, piece in pieces.items():
        per_head = len(piece.places) == 3  # [L, H, r]
        whole = leaves.matrices(params, name, per_head=per_head)[name]
        edited[name] = _kept(whole, piece, jnp.asarray(keep[name]))
    return leaves.replace(params, edited, first)


def rebuild_layer(params: Any, pieces: Pieces, keep: Masks, layer: int) -> Any:
    """One layer's leaves, without the axis L, with only the places that are kept.

    Bit for bit those of ``rebuild``, and nothing is computed but the matrices that lose a place.
    Leaves that no layer owns, the embedding for one, are None: such a layer is what ``lm.halts``
    runs in the place of its own. ``params`` have the layers on their first axis; of pieces that
    are ``Factors`` those of this layer alone are decomposed.
    """
    own = _one_layer(params, keep, layer)
    cut = {name: mask[layer][None] for name, mask in keep.items() if not mask[layer].all()}
    terms = {name: jax.tree.map(lambda leaf: leaf[None], pieces[name].at(layer)) for name in cut}
    return jax.tree.map(lambda leaf: leaf[0], rebuild(own, terms, cut))


def rebuild_touched(params: Any, pieces: Pieces, keep: Masks) -> Any:
    """What ``rebuild`` gives, layer by layer: of ``Factors`` only what an edit touches."""
    edited = {}
    for name, mask in keep.items():
        touched = [layer for layer, places in enumerate(mask) if not places.all()]
        if touched:
            whole = leaves.matrices(params, name, per_head=mask.ndim == 3)[name]
            rows = [_kept_of(whole[t], pieces[name].at(t), mask[t]) for t in touched]
            edited[name] = whole.at[jnp.array(touched)].set(jnp.stack(rows))
    return leaves.replace(params, edited)


def _kept(matrix: Array, piece: Terms | Magnitudes, keep: Array) -> Array:  # [..., p, q]
    return jnp.where(keep.all(-1)[..., None, None], matrix, piece.kept(matrix, keep))


_kept_of = jax.jit(_kept)


def _one_layer(params: Any, keep: Masks, layer: int) -> Any:
    """The params of a model that has this layer alone; what no layer owns is None."""
    stacks = leaves.stacks(params, tuple(keep))
    (num_layers,) = {len(mask) for mask in keep.values()}
    if not 0 <= layer < num_layers:
        raise ValueError(f"layer {layer}: this model has 0 to {num_layers - 1}")
    if not all(stack.axes.text.startswith("L") for stack in stacks):
        raise ValueError(
            "rebuild_layer takes params whose layers stand on the first axis of each leaf, not one "
            "leaf for each layer: rebuild the whole model"
        )

    def part(path: tuple, leaf: Array) -> Array | None:
        name = jax.tree_util.keystr(path[-1:], simple=True)
        if name in OUTSIDE_LAYERS:
            return None
        if jnp.shape(leaf)[:1] != (num_layers,):
            raise ValueError(
                f"{name} has shape {jnp.shape(leaf)} and none of the {num_layers} layers in front: "
                "give rebuild_layer the params without it"
            )
        return leaf[layer : layer + 1]

    return jax.tree_util.tree_map_with_path(part, params)
