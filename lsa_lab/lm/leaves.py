"""Leaves of Params from the tensors of a file, one after the other.

The tensors have the names and the axes that llama.cpp gives them, whatever the file. Three things
differ beyond names. The factor 1/√k of the scores is part of W_Q and b_q here. What turns the
coordinates (2i, 2i+1) of a query in some files turns (i, i + r/2) here, so that rows of queries and
keys change their order. And layers lie on an axis L.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from lsa_lab.lm.config import Config
from lsa_lab.lm.weights import AXES, TENSORS, Params, letter_sizes, shapes

_FUSED = ("w_q", "w_k", "w_v", "b_q", "b_k", "b_v")  # in some files one tensor, attn_qkv
_SCALED = {False: ("w_q", "b_q"), True: ("q_norm_scale",)}  # divided by √k, by Config.key_norm


class Tensors(NamedTuple):
    """The tensors of a file or a folder, each read when it is wanted."""

    source: Path
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]  # float32 or float64
    interleaved: bool = False  # coordinates (2i, 2i+1) of queries and keys are turned, not halves


class _Place(NamedTuple):
    """The tensor that holds a leaf."""

    name: str  # {} is the layer's number
    shape: tuple[int, ...]
    rows: slice = slice(None)  # those of the leaf


def read_params(tensors: Tensors, config: Config, dtype: np.dtype) -> Params:
    """Return the weights in ``dtype`` on the default device; only one leaf is held twice.

    Raises ValueError where a tensor is missing, has another shape, is not finite, or is none of
    this family's.
    """
    count = len(tensors.shapes)
    if config.num_layers > count:
        raise ValueError(f"{tensors.source} has {count} tensors for {config.num_layers} layers")
    places = _find_places(tensors, config)
    _check(tensors, list(places.values()), config)
    leaves = {}
    for leaf, shape in shapes(config).items():
        rows = np.empty(shape, dtype)
        for i, row in enumerate(rows if "L" in AXES[leaf] else [rows]):
            row[...] = _read(tensors, config, leaf, places[leaf], i)
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


def _find_places(tensors: Tensors, config: Config) -> dict[str, _Place]:
    size = letter_sizes(config)
    queries, keys = size["H"] * size["k"], size["G"] * size["k"]
    size |= {"Hk": queries, "Gk": keys}
    places = {}
    for leaf in shapes(config):
        name = "blk.{}." * ("L" in AXES[leaf]) + TENSORS[leaf]
        axes = ["D", "Hk"] if leaf == "w_o" else re.findall("[HG]k|[^L]", AXES[leaf])
        places[leaf] = _Place(name, tuple(size[axis] for axis in axes))
    if "blk.0.attn_qkv.weight" in tensors.shapes:
        for leaf, place in places.items():
            if leaf in _FUSED:
                ends = (0, queries, queries + keys, queries + 2 * keys)
                part = "qkv".index(leaf[-1])
                name = place.name.replace(f"attn_{leaf[-1]}", "attn_qkv")
                rows = slice(*ends[part : part + 2])
                places[leaf] = _Place(name, (ends[-1], *place.shape[1:]), rows)
    return places


def _read(
    tensors: Tensors, config: Config, leaf: str, place: _Place, layer: int
) -> np.ndarray:  # one layer's, in the axes of the leaf
    name = place.name.format(layer)
    tensor = tensors.read(name)[place.rows]
    if not np.isfinite(tensor).all():
        raise ValueError(
            f"{tensors.source}: {name} holds NaN or infinite entries: it diverged in its "
            "training, or the file is damaged"
        )
    if leaf == "w_o":
        tensor = tensor.reshape(config.width, config.num_heads, -1).swapaxes(0, 1)
    size = letter_sizes(config)
    tensor = tensor.reshape([size[letter] for letter in AXES[leaf].removeprefix("L")])
    if tensors.interleaved and leaf in ("w_q", "w_k", "b_q", "b_k"):
        r = config.rotary_width or 0
        tensor = tensor[:, np.r_[0:r:2, 1:r:2, r : config.key_width]]
    if leaf in _SCALED[config.key_norm]:
        tensor = tensor / np.float64(config.key_width) ** 0.5
    return tensor


def _check(tensors: Tensors, places: Sequence[_Place], config: Config) -> None:
    """Raise unless the file holds the tensors of these places, in their shapes, and no others."""
    expected = {
        place.name.format(i): place.shape for place in places for i in range(config.num_layers)
    }
    unread = {TENSORS["unembedding"]} if config.tied else set()
    missing = [name for name in expected if name not in tensors.shapes]
    more = [name for name in tensors.shapes if name not in expected.keys() | unread]
    if missing or more:
        verb, names = ("lacks", missing) if missing else ("holds", more)
        raise ValueError(
            f"{tensors.source} {verb} the tensor {', '.join(names[:3])}: a model of this family "
            "and config has others, or the file is incomplete"
        )
    for name, shape in expected.items():
        if tensors.shapes[name] != shape:
            raise ValueError(
                f"{tensors.source}: {name} has shape {list(tensors.shapes[name])}; its config says "
                f"{list(shape)}"
            )
