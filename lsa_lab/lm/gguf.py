"""A GGUF file, as llama.cpp writes it: metadata, and tensors dequantised as they are read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.files import import_extra
from lsa_lab.lm.config import FAMILIES, Config, Fields
from lsa_lab.lm.leaves import Tensors

_FAMILIES = ("llama", "qwen2", "qwen3", "gpt2")
# The fields of a Config under the keys of the metadata, after the architecture's name.
_KEYS = dict(num_layers="block_count", num_heads="attention.head_count", width="embedding_length")
_KEYS |= dict(mlp_width="feed_forward_length", context="context_length")
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


def read(path: Path) -> tuple[Config, Tensors, dict[str, Any]]:
    """Return the config, the tensors, whose file stays mapped, and the metadata."""
    gguf = import_extra("gguf", "lm")
    try:
        reader = gguf.GGUFReader(path)
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise ValueError(
            f"{path} is no GGUF file, cut short, damaged, or of a kind that the package gguf does "
            f"not read ({error}): fetch it again, or name a folder with config.json and safetensors"
        ) from error
    metadata = {name: field.contents() for name, field in reader.fields.items()}
    stored = {tensor.name: tensor for tensor in reader.tensors}
    shapes = {name: tuple(tensor.shape[::-1].tolist()) for name, tensor in stored.items()}

    def dequantise(name: str) -> np.ndarray:
        kind = stored[name].tensor_type
        try:
            return gguf.dequantize(stored[name].data, kind).reshape(shapes[name])
        except NotImplementedError as error:
            raise ValueError(
                f"{path}: {name} is {kind.name}, which the package gguf does not dequantise"
            ) from error

    config = _make_config(metadata, path, shapes)
    is_llama = metadata["general.architecture"] == "llama"
    return config, Tensors(path, shapes, dequantise, interleaved=is_llama), metadata


def _make_config(
    metadata: Mapping[str, Any], source: Path, shapes: Mapping[str, tuple[int, ...]]
) -> Config:
    family = Fields(metadata, source).read("general.architecture", str, only=_FAMILIES)
    own = {key.removeprefix(f"{family}."): value for key, value in metadata.items()}
    fields, norm = Fields(own, source), FAMILIES[family]["norm"]
    parts = {name: fields.read(key, int) for name, key in _KEYS.items()}
    heads = parts["num_heads"]
    parts["norm_epsilon"] = fields.read(_EPSILON[norm], float)
    parts["num_groups"] = fields.read("attention.head_count_kv", int, heads)
    key_width = fields.read("attention.key_length", int, parts["width"] // heads)
    parts["key_width"] = key_width
    widths = dict.fromkeys(("rope.dimension_count", "attention.value_length"), key_width)
    for key, only in (_ONLY | widths | {"attention.scale": key_width**-0.5}).items():
        fields.check(key, only)
    if own.get("split.count") not in (None, 0, 1):
        raise ValueError(
            f"{source} is one of {own['split.count']} parts of a model: join them by "
            "llama-gguf-split --merge"
        )
    if scaled := [name for name in shapes if name.startswith("rope_")]:
        raise ValueError(f"{source} scales its rope by {', '.join(scaled)}; supported is none")
    parts["vocabulary"] = shapes.get("token_embd.weight", (0,))[0]
    parts["tied"] = "output.weight" not in shapes
    parts["activation"] = "silu" if norm == "rms" else "gelu_tanh"
    if family != "gpt2":
        parts["rotary_width"] = key_width
        parts["rotary_base"] = fields.read("rope.freq_base", float, 10_000.0)
        parts["query_biases"] = "blk.0.attn_q.bias" in shapes
        parts["write_biases"] = "blk.0.attn_output.bias" in shapes
    return fields.make_config(**parts | FAMILIES[family])
