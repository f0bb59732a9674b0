"""Folders in the format of transformers: config.json, and model.safetensors or its shards."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.files import import_extra
from lsa_lab.lm.config import Config, Field, allow_only
from lsa_lab.lm.families import ACTIVATIONS, FAMILIES, TRANSFORMERS, Names
from lsa_lab.lm.leaves import Tensors

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
_COUNTS = "num_hidden_layers num_attention_heads hidden_size intermediate_size vocab_size"
_COUNTS += " max_position_embeddings n_layer n_head n_embd n_positions"
_EPSILONS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon")
_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
# The fields of a config.json that decide what is computed, with the defaults of transformers.
_FIELDS = {
    "model_type": Field(str, only=tuple(FAMILIES)),
    **dict.fromkeys(_COUNTS.split(), Field(int)),
    **dict.fromkeys(("n_inner", "num_key_value_heads", "head_dim"), Field(int, None)),
    **dict.fromkeys(_EPSILONS, Field(float)),
    **dict.fromkeys(("hidden_act", "activation_function"), Field(str, only=tuple(ACTIVATIONS))),
    "tie_word_embeddings": Field(bool, False),
    "attention_bias": Field(bool, False),
    "use_parallel_residual": Field(bool, True),
    "layer_types": Field(list, None),
    "rotary_dim": Field(int, 64),
    "rotary_pct": Field(float, 0.25, most=1),
    "partial_rotary_factor": Field(float, 1.0, most=1),
    **dict.fromkeys(("rope_theta", "rotary_emb_base"), Field(float, 10_000.0)),
    **dict.fromkeys(("rope_parameters", "rope_scaling"), Field(dict, None)),
    "rope_type": Field(str, only=("default", "llama3")),
    **dict.fromkeys(_LLAMA3, Field(float)),
    "original_max_position_embeddings": Field(int),
}
# Fields with which transformers, or another program, computes more than our decoder does, and their
# values without it.
_ONLY = {
    **dict.fromkeys(("is_causal", "scale_attn_weights"), True),
    **dict.fromkeys(("is_encoder_decoder", "add_cross_attention", "alibi", "mlp_bias"), False),
    **dict.fromkeys(("use_bidirectional_attention", "use_sliding_window"), False),
    **dict.fromkeys(("rope_interleaved", "scale_attn_by_inverse_layer_idx"), False),
    **dict.fromkeys(("clamp_kqv", "clip_qkv"), 0.0),
    **dict.fromkeys(("attn_logit_softcapping", "final_logit_softcapping"), 0.0),
    **dict.fromkeys(("logit_scale", "logits_scaling"), 1.0),
    **dict.fromkeys(("embedding_multiplier", "residual_multiplier"), 1.0),
    "hidden_activation": "gelu_pytorch_tanh",
    "quantization_config": None,
}
_FLOATS = ("F64", "F32", "F16", "BF16")


def read(path: Path) -> tuple[Config, Names, Tensors]:
    """Return the config, the places of its leaves, and the tensors of a folder."""
    file = path / "config.json"
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no {file}: a folder holds config.json and safetensors; a GGUF file is "
            "loaded by its own path"
        )
    fields = _read_json(file)
    config = make_config(fields, file)
    return config, TRANSFORMERS[fields["model_type"]], _tensors(path)


def make_config(fields: Mapping[str, Any], source: Path) -> Config:
    """Return the Config that a config.json describes; ``source`` is what errors name."""

    def read(key: str, *default: Any) -> Any:
        field = _FIELDS[key]
        return (field._replace(default=default[0]) if default else field).read(fields, key, source)

    family = read("model_type")
    for key, value in _ONLY.items():
        allow_only(value).read(fields, key, source)
    if family == "mistral":
        allow_only(None)._replace(default=4096).read(fields, "sliding_window", source)
    if any(kind != "full_attention" for kind in read("layer_types") or ()):
        raise ValueError(
            f"{source}: layer_types is {fields['layer_types']}; supported is full_attention alone"
        )
    keys = _KEYS[family]
    values = {name: read(key) for name, key in keys.items()}
    values["vocabulary"] = read("vocab_size")
    heads, width, key_width = values["num_heads"], values["width"], read("head_dim")
    if key_width is None and width % heads:
        raise ValueError(
            f"{source}: {keys['num_heads']} = {heads} does not divide {keys['width']} = {width}, "
            "and no head_dim is said"
        )
    values["mlp_width"] = values["mlp_width"] or 4 * width
    values["num_groups"] = read("num_key_value_heads") or heads
    values["key_width"] = key_width or width // heads
    values["activation"] = ACTIVATIONS[values["activation"]]
    if family == "gemma" and values["activation"] == "gelu":
        values["activation"] = "gelu_tanh"  # what its first files mean by gelu
    values["tied"] = read("tie_word_embeddings", family in ("gpt2", "gemma"))
    values |= _rotation(fields, family, values["key_width"], source) | FAMILIES[family]
    if family in ("llama", "qwen3", "gemma", "gpt_neox"):
        biases = read("attention_bias", family == "gpt_neox")
        values |= {"query_biases": biases, "write_biases": biases}
    if family == "gpt_neox":
        values["parallel"] = read("use_parallel_residual")
    try:
        return Config(**values)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _rotation(
    fields: Mapping[str, Any], family: str, key_width: int, source: Path
) -> dict[str, Any]:
    """Return rotary_width, rotary_base and rotary_scaling, which newer files keep in a group."""
    if family == "gpt2":
        return {}
    if family == "gptj":
        return {"rotary_width": _FIELDS["rotary_dim"].read(fields, "rotary_dim", source)}
    rope, scaling = dict(fields), None
    for name in ("rope_parameters", "rope_scaling"):
        part, group = _FIELDS[name].read(fields, name, source) or {}, f"{source}: {name}"
        key = "type" if "type" in part and "rope_type" not in part else "rope_type"
        if part.keys() <= {"rope_theta", "partial_rotary_factor"}:
            part = {key: "default"} | part
        if _FIELDS["rope_type"].read(part, key, group) == "llama3":
            scaling = tuple(float(_FIELDS[key].read(part, key, group)) for key in _LLAMA3)
        rope |= part

    def read(key: str, older: str) -> float:
        key = key if key in rope else older
        return float(_FIELDS[key].read(rope, key, source))

    neox = family == "gpt_neox"
    share = read("partial_rotary_factor", "rotary_pct" if neox else "partial_rotary_factor")
    if not neox and share != 1:
        raise ValueError(f"{source}: partial_rotary_factor is {share}; supported is 1 alone")
    return {
        "rotary_width": int(key_width * share),
        "rotary_base": read("rope_theta", "rotary_emb_base"),
        "rotary_scaling": scaling,
    }


def _tensors(path: Path) -> Tensors:
    """Return every tensor of the folder's safetensors files, which stay open for reading."""
    safetensors = import_extra("safetensors", "lm")
    files, shapes = {}, {}
    for shard, named in _find_shards(path).items():
        try:
            file = safetensors.safe_open(shard, "numpy")
        except safetensors.SafetensorError as error:
            raise ValueError(
                f"{shard} is cut short, damaged or no safetensors file ({error}): fetch it again"
            ) from error
        held = list(file.keys())
        if absent := sorted(set(named or ()) - set(held)):
            raise ValueError(f"{shard} lacks {absent[0]}, which its index names: fetch it again")
        for name in held if named is None else named:
            files[name], shapes[name] = file, tuple(file.get_slice(name).get_shape())

    def tensor(name: str) -> np.ndarray:
        kind = files[name].get_slice(name).get_dtype()
        if kind not in _FLOATS:  # checked only here, as masks that are not read are of any kind
            raise ValueError(f"{path}: {name} is {kind}; supported are {', '.join(_FLOATS)}")
        values = files[name].get_tensor(name)
        return values if values.dtype.itemsize >= 4 else values.astype(np.float32)

    return Tensors(path, shapes, tensor)


def _read_json(path: Path) -> dict[str, Any]:
    """Return the fields of a JSON file."""
    try:
        document = json.loads(path.read_text("utf-8"))
        if not isinstance(document, dict):
            raise ValueError(f"a {type(document).__name__}")
        return document
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON with fields ({error}): fetch it again") from error


def _find_shards(path: Path) -> dict[Path, list[str] | None]:
    """Return the safetensors files of the model in a folder, with the tensors to read from each.

    None stands for all tensors of the file. Where an index exists it decides: other shards may hold
    older copies of a tensor.
    """
    whole, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if whole.is_file():
        return {whole: None}
    if not index.is_file():
        raise FileNotFoundError(
            f"{path} holds neither {whole.name} nor {index.name}; pickles (*.bin, *.pt) are never "
            "read: convert them where you trust them, by save_pretrained of transformers"
        )
    places: dict[str, Any] = _read_json(index).get("weight_map", {"": ""})
    names = list(places.values()) if isinstance(places, dict) else [""]
    if not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise ValueError(f"{index} has no weight_map from tensors to files in its folder")
    if missing := [name for name in sorted(set(names)) if not (path / name).is_file()]:
        raise FileNotFoundError(f"{path} lacks {', '.join(missing)}: fetch them again")
    return {path / name: sorted(t for t in places if places[t] == name) for name in set(names)}
