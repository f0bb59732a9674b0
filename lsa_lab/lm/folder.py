"""Folders in the format of transformers: config.json, and model.safetensors or its shards."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.files import import_extra
from lsa_lab.lm.config import FAMILIES, Config, Fields
from lsa_lab.lm.leaves import Tensors

# The fields of a Config under the keys of config.json.
_LONG = dict(num_layers="num_hidden_layers", num_heads="num_attention_heads", width="hidden_size")
_LONG |= dict(context="max_position_embeddings")
_SHORT = dict(num_layers="n_layer", num_heads="n_head", width="n_embd", context="n_positions")
_EPSILONS = dict(gpt2="layer_norm_epsilon", gptj="layer_norm_epsilon", gpt_neox="layer_norm_eps")
_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
# The names under which files know the functions of Config.activation.
_ACTIVATIONS = {"silu": "silu", "gelu": "gelu"}
_ACTIVATIONS |= dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_tanh")
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
# Masks and angles of older files, which are not read.
_BUFFERS = re.compile(r"(.*\.)?(((self_)?attn|attention)\.(masked_)?bias|rotary_emb\.\w+)")
# The names of the package gguf begin with these; a model saved without its head has none.
_PREFIXES = ("", "model.", "transformer.", "gpt_neox.")
_ARCHITECTURES = {"mistral": "llama", "gpt_neox": "gptneox"}  # in the package gguf


def read(path: Path) -> tuple[Config, Tensors]:
    """Return the config and the tensors of a folder."""
    file = path / "config.json"
    fields = _read_json(file)
    config = make_config(fields, file)
    return config, _tensors(path, fields["model_type"], config)


def make_config(values: Mapping[str, Any], source: Path | str) -> Config:
    """Return the Config that a config.json describes; ``source`` is what errors name."""
    fields = Fields(values, source)
    family = fields.read("model_type", str, only=tuple(FAMILIES))
    keys = _SHORT if family in ("gpt2", "gptj") else _LONG
    parts = {name: fields.read(key, int) for name, key in keys.items()}
    layers, heads, width = (parts[name] for name in ("num_layers", "num_heads", "width"))
    for key, only in _ONLY.items():
        fields.check(key, only)
    fields.check("layer_types", ["full_attention"] * layers)
    if family == "mistral":
        fields.check("sliding_window", None, default=4096)
    key_width = fields.read("head_dim", int, None)
    if key_width is None and width % heads:
        raise ValueError(
            f"{source}: {keys['num_heads']} = {heads} does not divide {keys['width']} = {width}, "
            "and no head_dim is said"
        )
    parts["key_width"] = key_width or width // heads
    parts["num_groups"] = fields.read("num_key_value_heads", int, None) or heads
    parts["vocabulary"] = fields.read("vocab_size", int)
    parts["norm_epsilon"] = fields.read(_EPSILONS.get(family, "rms_norm_eps"), float)
    if keys is _SHORT:
        parts["mlp_width"] = fields.read("n_inner", int, None) or 4 * width
    else:
        parts["mlp_width"] = fields.read("intermediate_size", int)
    act = "activation_function" if keys is _SHORT else "hidden_act"
    parts["activation"] = _ACTIVATIONS[fields.read(act, str, only=tuple(_ACTIVATIONS))]
    if family == "gemma" and parts["activation"] == "gelu":
        parts["activation"] = "gelu_tanh"  # what its first files mean by gelu
    parts["tied"] = fields.read("tie_word_embeddings", bool, family in ("gpt2", "gemma"))
    if family in ("llama", "qwen3", "gemma", "gpt_neox"):
        biases = fields.read("attention_bias", bool, family == "gpt_neox")
        parts |= {"query_biases": biases, "write_biases": biases}
    if family == "gpt_neox":
        parts["parallel"] = fields.read("use_parallel_residual", bool, True)
    rotation = _rotation(fields, family, parts["key_width"])
    return fields.make_config(**parts, **rotation, **FAMILIES[family])


def _rotation(fields: Fields, family: str, key_width: int) -> dict[str, Any]:
    """Return rotary_width, rotary_base and rotary_scaling, which newer files keep in a group."""
    if family == "gpt2":
        return {}
    if family == "gptj":
        return {"rotary_width": fields.read("rotary_dim", int, 64)}
    values, scaling = dict(fields.values), None
    for name in ("rope_parameters", "rope_scaling"):
        group = Fields(fields.read(name, dict, None) or {}, f"{fields.source}: {name}")
        key = "rope_type" if "rope_type" in group.values else "type"
        is_plain = group.values.keys() <= {"rope_theta", "partial_rotary_factor"}
        if not is_plain and group.read(key, str, only=("default", "llama3")) == "llama3":
            kinds = (float, float, float, int)
            scaling = tuple(map(float, map(group.read, _LLAMA3, kinds)))
        values |= group.values
    rope, share = Fields(values, fields.source), 1.0
    if family != "gpt_neox":
        rope.check("partial_rotary_factor", 1.0)
    elif "partial_rotary_factor" in values:
        share = rope.read("partial_rotary_factor", float, most=1)
    else:
        share = rope.read("rotary_pct", float, 0.25, most=1)
    base = "rope_theta" if "rope_theta" in values else "rotary_emb_base"
    return {
        "rotary_width": int(key_width * share),
        "rotary_base": float(rope.read(base, float, 10_000.0)),
        "rotary_scaling": scaling,
    }


def _tensors(path: Path, family: str, config: Config) -> Tensors:
    """Return the tensors of the folder's files, as the converters of llama.cpp turn them."""
    gguf = import_extra("gguf", "lm")
    files = _open(path)
    architecture = _ARCHITECTURES.get(family, family)
    kinds = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(kinds[architecture], min(config.num_layers, len(files)))
    places, shapes = {}, {}

    def is_turned(name: str) -> bool:  # GPT-2's convolutions hold the transpose
        return family == "gpt2" and name.startswith("blk.")

    for name in files:
        if _BUFFERS.fullmatch(name):
            continue
        known = (names.get_name(prefix + name, (".weight", ".bias")) for prefix in _PREFIXES)
        new = next(filter(None, known), name)
        shape = files[name].get_slice(name).get_shape()
        places[new], shapes[new] = name, tuple(shape[::-1] if is_turned(new) else shape)
        if family == "gptj" and "attn_norm" in new:  # one norm stands for two
            both = new.replace("attn_norm", "ffn_norm")
            places[both], shapes[both] = places[new], shapes[new]

    def read(name: str) -> np.ndarray:
        file, key = files[places[name]], places[name]
        kind = file.get_slice(key).get_dtype()
        if kind not in _FLOATS:
            raise ValueError(f"{path}: {key} is {kind}; supported are {', '.join(_FLOATS)}")
        rows = file.get_tensor(key)
        rows = rows if rows.dtype.itemsize >= 4 else rows.astype(np.float32)
        if family == "gemma" and "norm" in name:
            rows = rows + np.float64(1)  # files hold the scales less 1
        if family == "gpt_neox" and "attn_qkv" in name:  # the three of a head lie side by side
            heads = rows.reshape(config.num_heads, 3, -1)
            rows = heads.swapaxes(0, 1).reshape(rows.shape)
        return rows.T if is_turned(name) else rows

    return Tensors(path, shapes, read, interleaved=family == "gptj")


def _open(path: Path) -> dict[str, Any]:
    """Return the open safetensors file that holds each tensor of the model in a folder.

    Where there are shards their index decides: another may hold an older copy of a tensor.
    """
    safetensors = import_extra("safetensors", "lm")
    whole, index = path / "model.safetensors", path / "model.safetensors.index.json"
    try:
        if whole.is_file():
            file = safetensors.safe_open(whole, "numpy")
            return dict.fromkeys(file.keys(), file)
        if index.is_file():
            places = Fields(_read_json(index), index).read("weight_map", dict)
            names = set(places.values())
            shards = {name: safetensors.safe_open(path / name, "numpy") for name in names}
            for tensor, name in places.items():
                shards[name].get_slice(tensor)  # raises where a shard lacks it
            return {tensor: shards[name] for tensor, name in places.items()}
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"a safetensors file of {path} is damaged ({error}): fetch it again"
        ) from error
    raise FileNotFoundError(
        f"{path} holds neither {whole.name} nor {index.name}; pickles (*.bin, *.pt) are never "
        "read: convert them where you trust them, by save_pretrained of transformers"
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text("utf-8"))
        if not isinstance(document, dict):
            raise ValueError(f"a {type(document).__name__}")
        return document
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON with fields ({error}): fetch it again") from error
