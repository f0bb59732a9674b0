"""A folder as transformers has it: config.json, and model.safetensors or its shards."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.arguments import check_at_least
from lsa_lab.lm import leaves
from lsa_lab.lm.config import Config
from lsa_lab.lm.families import ACTIVATIONS, FAMILIES, TRANSFORMERS, Names
from lsa_lab.lm.leaves import Tensors
from lsa_lab.lm.weights import Params
from lsa_lab.store import safe_files, shards
from lsa_lab.store.provenance import package

_LONG = {
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "width": "hidden_size",
    "mlp_width": "intermediate_size",
    "context": "max_position_embeddings",
    "activation": "hidden_act",
}
_SHORT = {
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "width": "n_embd",
    "mlp_width": "n_inner",
    "context": "n_positions",
    "activation": "activation_function",
    "norm_epsilon": "layer_norm_epsilon",
}
# The fields of a Config under the keys of config.json.
_KEYS = {
    **dict.fromkeys(
        ("llama", "mistral", "qwen2", "qwen3", "gemma"), _LONG | {"norm_epsilon": "rms_norm_eps"}
    ),
    "gpt2": _SHORT,
    "gptj": _SHORT,
    "gpt_neox": _LONG | {"norm_epsilon": "layer_norm_eps"},
}
# What a config.json may say with other values, and the one that our decoder computes.
_ONLY = {
    "quantization_config": None,
    "use_sliding_window": False,
    "mlp_bias": False,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "use_bidirectional_attention": False,
}
_FLOATS = ("F64", "F32", "F16", "BF16")


def read(path: Path) -> tuple[Config, Names, Tensors]:
    """The config, where its leaves stand, and the tensors of a folder."""
    file = path / "config.json"
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no {file}: a folder holds config.json and safetensors; a GGUF file is "
            "loaded by its own path"
        )
    fields = shards.fields(file)
    config = config_of(fields, file)
    return config, TRANSFORMERS[fields["model_type"]], _tensors(path)


def write(path: Path, config: Config, params: Params) -> None:
    """Write config.json and model.safetensors, the inverse of ``read`` for a family like Llama's.

    Raises ValueError where no such family has the config.
    """
    safetensors = package("safetensors.numpy", "lm")
    fields: dict[str, Any] = {key: getattr(config, name) for name, key in _KEYS["llama"].items()}
    fields |= {
        "vocab_size": config.vocabulary,
        "num_key_value_heads": config.num_groups,
        "head_dim": config.key_width,
        "tie_word_embeddings": config.tied,
        "rope_theta": config.rotary_base,
        "attention_bias": config.write_biases,
        "hidden_act": "silu",
    }
    kinds = [fields | {"model_type": family} for family in ("llama", "qwen2", "qwen3")]
    kinds = [each for each in kinds if config_of(each, path) == config]
    if not kinds:
        raise ValueError(f"{config} is no Llama, Qwen2 or Qwen3: write it in a format of its own")
    tensors = leaves.tensors(params, TRANSFORMERS[kinds[0]["model_type"]], config)
    safe_files.write(path / "config.json", json.dumps(kinds[0], indent=1).encode())
    safe_files.write(path / "model.safetensors", safetensors.save(tensors))


def config_of(fields: Mapping[str, Any], source: Path) -> Config:
    """The Config that the fields of a config.json describe; ``source`` is what errors name."""
    family = fields.get("model_type")
    if family not in FAMILIES:
        raise ValueError(
            f"{source}: the architecture is {family!r}; supported are {', '.join(FAMILIES)}"
        )
    for key, value in _ONLY.items():
        if fields.get(key) not in (None, value):
            raise ValueError(f"{source}: {key} is {fields[key]!r}; supported is {value!r} alone")
    if family == "mistral" and fields.get("sliding_window") is not None:
        window = fields["sliding_window"]
        raise ValueError(f"{source}: sliding_window is {window!r}; supported is None alone")
    _check_layer_types(fields, source)
    keys = _KEYS[family]
    needed = {*keys.values(), "vocab_size"} - {"n_inner"}
    absent = sorted(key for key in needed if fields.get(key) is None)
    if absent:
        raise ValueError(f"{source} does not say {', '.join(absent)}")
    values: dict[str, Any] = {name: fields.get(key) for name, key in keys.items()}
    values["vocabulary"] = fields["vocab_size"]
    for name in ("num_layers", "num_heads", "width"):
        check_at_least(values[name], f"{source}: {keys[name]}")
    if fields.get("head_dim") is None and values["width"] % values["num_heads"]:
        raise ValueError(
            f"{source}: {keys['num_heads']} = {values['num_heads']} does not divide "
            f"{keys['width']} = {values['width']}, and no head_dim is said"
        )
    values["mlp_width"] = values["mlp_width"] or 4 * values["width"]
    values["num_groups"] = fields.get("num_key_value_heads") or values["num_heads"]
    values["key_width"] = fields.get("head_dim") or values["width"] // values["num_heads"]
    values["activation"] = _activation(values["activation"], source)
    if family == "gemma" and values["activation"] == "gelu":
        values["activation"] = "gelu_tanh"  # what its first files mean by gelu
    values["tied"] = fields.get("tie_word_embeddings", family in ("gpt2", "gemma"))
    values |= _rotation(fields, values["key_width"], source) | FAMILIES[family]
    if family in ("llama", "qwen3", "gemma", "gpt_neox"):
        biases = fields.get("attention_bias", family == "gpt_neox")
        values |= {"query_biases": biases, "write_biases": biases}
    if family == "gpt_neox":
        values["parallel"] = fields.get("use_parallel_residual", True)
    return Config(**values)


def _activation(name: str, source: Path) -> str:
    if name not in ACTIVATIONS:
        raise ValueError(
            f"{source}: the activation is {name!r}; supported are {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


def _check_layer_types(fields: Mapping[str, Any], source: Path) -> None:
    kinds = set(fields.get("layer_types") or ()) - {"full_attention"}
    if kinds:
        raise ValueError(
            f"{source}: layer_types has {', '.join(sorted(kinds))}; supported is full_attention "
            "alone"
        )


def _rotation(fields: Mapping[str, Any], key_width: int, source: Path) -> dict[str, Any]:
    """rotary_width, rotary_base and rotary_scaling, which newer files keep in rope_parameters."""
    family = fields["model_type"]
    if family == "gpt2":
        return {}
    if family == "gptj":
        return {"rotary_width": fields.get("rotary_dim", 64)}
    rope: dict[str, Any] = {}
    for key in ("rope_parameters", "rope_scaling"):
        part = fields.get(key) or {}
        rope |= part
        kind = part.get("rope_type", part.get("type", "default"))
        if kind not in ("default", "llama3"):
            raise ValueError(
                f"{source}: the rope scaling is {kind!r}; supported are none and llama3"
            )
    base = rope.get("rope_theta", fields.get("rope_theta", fields.get("rotary_emb_base", 1e4)))
    share = fields.get("rotary_pct", 0.25) if family == "gpt_neox" else 1.0
    share = rope.get("partial_rotary_factor", fields.get("partial_rotary_factor", share))
    if family != "gpt_neox" and share != 1:
        raise ValueError(f"{source}: partial_rotary_factor is {share}; supported is 1 alone")
    rotation: dict[str, Any] = {"rotary_width": int(key_width * share), "rotary_base": float(base)}
    if rope.get("rope_type", rope.get("type")) == "llama3":
        keys = "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"
        absent = [key for key in keys if key not in rope]
        if absent:
            raise ValueError(f"{source}: the rope scaling does not say {', '.join(absent)}")
        rotation["rotary_scaling"] = tuple(float(rope[key]) for key in keys)
    return rotation


def _tensors(path: Path) -> Tensors:
    """Every tensor of the folder's safetensors files, which stay open for reading."""
    safetensors = package("safetensors", "lm")
    files, shapes = {}, {}
    for shard in shards.shards(path):
        try:
            file = safetensors.safe_open(shard, "numpy")
        except safetensors.SafetensorError as error:
            raise ValueError(
                f"{shard} is cut short, damaged or no safetensors file ({error}): fetch it again"
            ) from error
        for name in file.keys():  # noqa: SIM118 - it is no dictionary
            part = file.get_slice(name)
            if part.get_dtype() not in _FLOATS:
                raise ValueError(
                    f"{shard}: {name} is {part.get_dtype()}; supported are {', '.join(_FLOATS)}"
                )
            files[name], shapes[name] = file, tuple(part.get_shape())

    def tensor(name: str) -> np.ndarray:
        values = files[name].get_tensor(name)
        return values if values.dtype.itemsize >= 4 else values.astype(np.float32)

    return Tensors(path, shapes, tensor)
