"""A GGUF file, as llama.cpp writes it: metadata, and tensors dequantised as they are read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.arguments import check_at_least
from lsa_lab.lm.config import Config
from lsa_lab.lm.families import FAMILIES, GGUF, Names
from lsa_lab.lm.leaves import Tensors
from lsa_lab.store.provenance import package

# The fields of a Config under the keys of the metadata, after the architecture's name.
_KEYS = {
    "num_layers": "block_count",
    "num_heads": "attention.head_count",
    "width": "embedding_length",
    "mlp_width": "feed_forward_length",
    "context": "context_length",
}
_EPSILON = {"rms": "attention.layer_norm_rms_epsilon", "layer": "attention.layer_norm_epsilon"}
# What a file may say with other values, and the one that our decoder computes.
_ONLY = {
    "rope.scaling.type": "none",
    "rope.scale_linear": 1.0,
    "attention.sliding_window": 0,
    "expert_count": 0,
}
# These are the width of a key: no coordinate is left unturned.
_WIDTHS = ("rope.dimension_count", "attention.value_length")


def read(path: Path) -> tuple[Config, Names, Tensors, dict[str, Any]]:
    """The config, where its leaves stand, the tensors, and the metadata as plain values."""
    reader = _reader(path)
    metadata = {name: field.contents() for name, field in reader.fields.items()}
    tensors = _tensors(reader, path)
    config = config_of(metadata, tensors)
    return config, GGUF[metadata["general.architecture"]], tensors, metadata


def config_of(metadata: Mapping[str, Any], tensors: Tensors) -> Config:
    """The Config that metadata and names of tensors describe."""
    source, family = tensors.source, metadata.get("general.architecture")
    if family not in GGUF:
        raise ValueError(
            f"{source}: the architecture is {family!r}; from GGUF, {', '.join(GGUF)} are supported"
        )
    fields = {
        key.removeprefix(f"{family}."): value
        for key, value in metadata.items()
        if key.startswith(f"{family}.")
    }
    norm = FAMILIES[family]["norm"]
    keys = _KEYS | {"norm_epsilon": _EPSILON[norm]}
    absent = sorted(key for key in keys.values() if key not in fields)
    if absent:
        raise ValueError(f"{source} does not say {', '.join(f'{family}.{key}' for key in absent)}")
    values = {name: fields[key] for name, key in keys.items()}
    heads, width = (check_at_least(values[name], keys[name]) for name in ("num_heads", "width"))
    values["num_groups"] = fields.get("attention.head_count_kv", heads)
    values["key_width"] = fields.get("attention.key_length", width // heads)
    only = _ONLY | dict.fromkeys(_WIDTHS, values["key_width"])
    _check(fields, only, metadata.get("split.count", 1), tensors)
    values["vocabulary"] = tensors.shapes.get("token_embd.weight", (0,))[0]
    values["tied"] = "output.weight" not in tensors.shapes
    values["activation"] = "silu" if norm == "rms" else "gelu_tanh"
    if family != "gpt2":
        values["rotary_width"] = values["key_width"]
        values["rotary_base"] = fields.get("rope.freq_base", 10_000.0)
        values["query_biases"] = "blk.0.attn_q.bias" in tensors.shapes
        values["write_biases"] = "blk.0.attn_output.bias" in tensors.shapes
    return Config(**values | FAMILIES[family])


def _check(
    fields: Mapping[str, Any], only: Mapping[str, Any], parts: int, tensors: Tensors
) -> None:
    """Raise if the file describes what our decoder does not compute."""
    source = tensors.source
    if parts > 1:
        raise ValueError(
            f"{source} is one of {parts} parts of a model: join them by llama-gguf-split --merge"
        )
    for key, value in only.items():
        if fields.get(key, value) != value:
            raise ValueError(f"{source}: {key} is {fields[key]!r}; supported is {value!r} alone")
    scaled = sorted(name for name in tensors.shapes if name.startswith("rope_"))
    if scaled:
        raise ValueError(f"{source} scales its rope by {', '.join(scaled)}; supported is none")


def _tensors(reader: Any, path: Path) -> Tensors:
    """The tensors of a file, which stays mapped; axes in the order of numpy."""
    gguf = package("gguf", "lm")
    stored = {tensor.name: tensor for tensor in reader.tensors}
    shapes = {name: tuple(tensor.shape[::-1].tolist()) for name, tensor in stored.items()}

    def read(name: str) -> np.ndarray:
        kind = stored[name].tensor_type
        try:
            return gguf.dequantize(stored[name].data, kind).reshape(shapes[name])
        except NotImplementedError as error:
            raise ValueError(
                f"{path}: {name} is {kind.name}, which the package gguf does not dequantise"
            ) from error

    return Tensors(path, shapes, read)


def _reader(path: Path) -> Any:
    gguf = package("gguf", "lm")
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(
                f"{path} is no GGUF file; expected one, or a folder with config.json and "
                "safetensors"
            )
    try:
        return gguf.GGUFReader(path)
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise ValueError(
            f"{path} is cut short, damaged, or of a kind that the package gguf does not read "
            f"({error}): fetch it again"
        ) from error
