"""A GGUF file, as llama.cpp writes it: metadata, and tensors dequantised as they are read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.files import import_extra
from lsa_lab.lm.config import Config, Field, allow_only
from lsa_lab.lm.families import FAMILIES, TRANSFORMERS, Names
from lsa_lab.lm.leaves import Tensors

_FAMILIES = ("llama", "qwen2", "qwen3", "gpt2")
# The fields of a Config under the keys of the metadata, after the architecture's name.
_KEYS = {
    "num_layers": "block_count",
    "num_heads": "attention.head_count",
    "width": "embedding_length",
    "mlp_width": "feed_forward_length",
    "context": "context_length",
}
_EPSILON = {"rms": "attention.layer_norm_rms_epsilon", "layer": "attention.layer_norm_epsilon"}
# Fields with which llama.cpp computes more than our decoder does, and their values without it.
_ONLY = {
    "rope.scaling.type": "none",
    **dict.fromkeys(("rope.scaling.factor", "rope.scaling.attn_factor", "rope.scale_linear"), 1.0),
    **dict.fromkeys(("logit_scale", "embedding_scale", "residual_scale"), 1.0),
    **dict.fromkeys(("attention.clamp_kqv", "attention.max_alibi_bias"), 0.0),
    **dict.fromkeys(("attn_logit_softcapping", "final_logit_softcapping"), 0.0),
    **dict.fromkeys(("attention.sliding_window", "expert_count"), 0),
    "rope.dimension_sections": None,
    "attention.causal": True,
    "use_parallel_residual": False,
}
# These are the width of a key: no coordinate is left unturned.
_WIDTHS = ("rope.dimension_count", "attention.value_length")


def read(path: Path) -> tuple[Config, Names, Tensors, dict[str, Any]]:
    """Return the config, the places of its leaves, the tensors, and the metadata."""
    reader = _reader(path)
    metadata = {name: field.contents() for name, field in reader.fields.items()}
    tensors = _tensors(reader, path)
    config = make_config(metadata, tensors)
    return config, _name_places(metadata["general.architecture"]), tensors, metadata


def _name_places(family: str) -> Names:
    """Return the places of a family's leaves, by the package's map of names.

    llama.cpp stores the transpose of GPT-2's linear maps, and interleaves the pairs of a Llama.
    """
    gguf = import_extra("gguf", "lm")
    kinds = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
    table, theirs, places = gguf.get_tensor_name_map(kinds[family], 1), TRANSFORMERS[family], {}
    for leaf, place in theirs.places.items():
        prefix = "" if leaf == "unembedding" else theirs.prefix
        if name := table.get_name(prefix + place.name.format(0), (".weight", ".bias")):
            turned = family == "gpt2" and leaf not in ("embedding", "positions", "unembedding")
            layout = " ".join(place.layout.split()[:: -1 if turned else 1])
            name = name.replace("blk.0.", "blk.{}.")
            places[leaf] = place._replace(name=name, layout=layout)
    return Names(places, interleaved=family == "llama")


def make_config(metadata: Mapping[str, Any], tensors: Tensors) -> Config:
    """Return the Config that metadata and names of tensors describe."""
    source = tensors.source
    family = Field(str, only=_FAMILIES).read(metadata, "general.architecture", source)

    def read(key: str, field: Field) -> Any:
        return field.read(metadata, f"{family}.{key}", source)

    norm = FAMILIES[family]["norm"]
    values = {name: read(key, Field(int)) for name, key in _KEYS.items()}
    values["norm_epsilon"] = read(_EPSILON[norm], Field(float))
    heads = values["num_heads"]
    values["num_groups"] = read("attention.head_count_kv", Field(int, heads))
    key_width = read("attention.key_length", Field(int, values["width"] // heads))
    values["key_width"] = key_width
    only = _ONLY | dict.fromkeys(_WIDTHS, key_width) | {"attention.scale": key_width**-0.5}
    for key, value in only.items():
        read(key, allow_only(value))
    _check(metadata.get("split.count"), tensors)
    values["vocabulary"] = tensors.shapes.get("token_embd.weight", (0,))[0]
    values["tied"] = "output.weight" not in tensors.shapes
    values["activation"] = "silu" if norm == "rms" else "gelu_tanh"
    if family != "gpt2":
        values["rotary_width"] = key_width
        values["rotary_base"] = read("rope.freq_base", Field(float, 10_000.0))
        values["query_biases"] = "blk.0.attn_q.bias" in tensors.shapes
        values["write_biases"] = "blk.0.attn_output.bias" in tensors.shapes
    try:
        return Config(**values | FAMILIES[family])
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _check(parts: Any, tensors: Tensors) -> None:
    """Raise if the file is a part of a model, or has tensors that scale its rotation."""
    source = tensors.source
    if parts not in (None, 0, 1):
        raise ValueError(
            f"{source} is one of {parts} parts of a model: join them by llama-gguf-split --merge"
        )
    scaled = sorted(name for name in tensors.shapes if name.startswith("rope_"))
    if scaled:
        raise ValueError(f"{source} scales its rope by {', '.join(scaled)}; supported is none")


def _tensors(reader: Any, path: Path) -> Tensors:
    """Return the tensors of a file, which stays mapped; axes in the order of NumPy."""
    gguf = import_extra("gguf", "lm")
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
    gguf = import_extra("gguf", "lm")
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
