"""Leaves of Params from the tensors of a file, one after the other.

Four things differ beyond names and layouts. The factor 1/√k of the scores is part of W_Q and b_q
here. What turns the coordinates (2i, 2i+1) of a query there turns (i, i + r/2) here, so that rows
of queries and keys change their order. Gemma's scales of norms, which files hold less 1, are whole.
And layers lie on an axis L.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from lsa_lab.lm.config import Config
from lsa_lab.lm.families import Names, Place
from lsa_lab.lm.weights import AXES, Params, letter_sizes, shapes
from lsa_lab.models.blocks import OUTSIDE_LAYERS

SCALED = {False: ("w_q", "b_q"), True: ("q_norm_scale",)}  # divided by √k, by Config.key_norm


class Tensors(NamedTuple):
    """The tensors of a file or a folder, each read when it is wanted."""

    source: Path
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]  # float32 or float64


def read_params(tensors: Tensors, names: Names, config: Config, dtype: DTypeLike) -> Params:
    """Return the weights in ``dtype`` on the default device; only one leaf is held twice.

    Raises ValueError where a tensor is missing, has another shape, is not finite, or is none of
    this family's.
    """
    dtype, count = check_dtype(dtype), len(tensors.shapes)
    if config.num_layers > count:
        raise ValueError(f"{tensors.source} has {count} tensors for {config.num_layers} layers")
    places = {leaf: _find_place(names, leaf, tensors) for leaf in shapes(config)}
    _check(tensors, names, places, config)
    leaves = {}
    for leaf, shape in shapes(config).items():
        rows = np.empty(shape, dtype)
        if leaf in OUTSIDE_LAYERS:
            rows[...] = _read(tensors, names, config, leaf, places[leaf])
        else:
            for i, row in enumerate(rows):
                place = places[leaf]._replace(name=places[leaf].name.format(i))
                row[...] = _read(tensors, names, config, leaf, place)
        leaves[leaf] = jnp.asarray(rows)
    return Params(**leaves)


def check_dtype(dtype: DTypeLike) -> np.dtype:
    """Return the dtype, if jax holds weights in it."""
    dtype = jnp.dtype(dtype)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(f"dtype is {dtype}: weights are floats, for example float32 or bfloat16")
    if dtype == np.float64 and not jax.config.read("jax_enable_x64"):
        raise ValueError("dtype is float64, and jax would cut it to float32: enable jax_enable_x64")
    return dtype


def _find_place(names: Names, leaf: str, tensors: Tensors) -> Place:
    """Return the place of a leaf in this file, which may leave the prefix out."""
    place = names.places[leaf]
    full = names.prefix + place.name
    return place._replace(name=full) if full.format(0) in tensors.shapes else place


def _read(
    tensors: Tensors, names: Names, config: Config, leaf: str, place: Place
) -> np.ndarray:  # one layer's, in the axes of the leaf
    size, axes = letter_sizes(config), AXES[leaf]
    letters = place.layout.replace(" ", "")
    if "3" in letters:
        axes = "3" + axes
    tensor = tensors.read(place.name).reshape([size[letter] for letter in letters])
    if not np.isfinite(tensor).all():
        raise ValueError(
            f"{tensors.source}: {place.name} holds NaN or infinite entries: it diverged in its "
            "training, or the file is damaged"
        )
    tensor = tensor.transpose([letters.index(letter) for letter in axes])
    if "3" in letters:
        tensor = tensor[place.part]
    if names.scales_less_one and leaf.endswith("_scale"):
        tensor = tensor + np.float64(1)
    if names.interleaved and leaf in ("w_q", "w_k", "b_q", "b_k"):
        tensor = tensor[:, _halves(config)]
    return (
        tensor / np.float64(config.key_width) ** 0.5 if leaf in SCALED[config.key_norm] else tensor
    )


def _halves(config: Config) -> np.ndarray:  # [k]
    """Return the order in which coordinates 0, 2, 4, ..., 1, 3, 5, ... are two halves."""
    r = config.rotary_width or 0
    return np.r_[0:r:2, 1:r:2, r : config.key_width]


def _check(tensors: Tensors, names: Names, places: Mapping[str, Place], config: Config) -> None:
    """Raise unless the file holds the tensors of these places, in their shapes, and no others."""
    size = letter_sizes(config)
    layouts = {
        place.name.format(i): place.layout
        for place in places.values()
        for i in range(config.num_layers)
    }
    missing = [name for name in layouts if name not in tensors.shapes]
    if missing:
        raise ValueError(
            f"{tensors.source} lacks {_list_names(missing)}: it is incomplete, or another model's"
        )
    for name, layout in layouts.items():
        expected = tuple(math.prod(size[letter] for letter in axis) for axis in layout.split())
        if tensors.shapes[name] != expected:
            raise ValueError(
                f"{tensors.source}: {name} has shape {list(tensors.shapes[name])}; its config says "
                f"{list(expected)}"
            )
    unread = names.unread + ("|" + re.escape(names.places["unembedding"].name)) * config.tied
    more = [n for n in tensors.shapes if n not in layouts and not re.fullmatch(unread, n)]
    if more:
        raise ValueError(
            f"{tensors.source} holds {_list_names(more)}, which a model of this family and config "
            "does not have: what it does is not supported"
        )


def _list_names(names: Sequence[str]) -> str:
    """Return the first of the names, and the number of the others."""
    more = len(names) - 1
    return f"the tensor {names[0]}" + f" and {more} more" * (more > 0)
