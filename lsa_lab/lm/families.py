"""Families of decoders: what is common to each, and where its files hold which weight.

A tensor's layout is written in the alphabet of the shapes, its axes parted by blanks: "D 3Hk" is a
matrix [D, 3·H·k] whose columns hold the queries of all heads, then their keys, then their values;
in "H3k D" the three of a head lie side by side.
"""

from typing import Any, NamedTuple

# The fields of a Config that a family fixes.
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"norm": "rms"},
    "mistral": {"norm": "rms"},
    "qwen2": {"norm": "rms", "query_biases": True},
    "qwen3": {"norm": "rms", "key_norm": True},
    "gemma": {"norm": "rms", "scaled_embedding": True},
    "gpt2": {
        "norm": "layer",
        "gated": False,
        "learned_positions": True,
        "query_biases": True,
        "write_biases": True,
        "mlp_biases": True,
    },
    "gptj": {
        "norm": "layer",
        "gated": False,
        "parallel": True,
        "mlp_biases": True,
        "unembedding_bias": True,
    },
    "gpt_neox": {"norm": "layer", "gated": False, "mlp_biases": True},
}

# The names under which files know the functions of Config.activation.
ACTIVATIONS = {
    "silu": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}


class Place(NamedTuple):
    """The tensor that holds a leaf of Params; {} in its name is the layer's number."""

    name: str
    layout: str
    part: int = 0  # of three, where the layout has a 3


class Names(NamedTuple):
    """The places of the leaves in one kind of file."""

    places: dict[str, Place]
    prefix: str = ""  # before these names, unless the file holds the model without its head
    unread: str = r"(?!)"  # names of tensors that say nothing: masks and angles
    interleaved: bool = False  # coordinates (2i, 2i+1) of queries and keys are turned, not halves
    scales_less_one: bool = False  # of norms


def _norm(leaf: str, name: str) -> dict[str, Place]:
    """Return the places of the two leaves of a layer norm."""
    scale, offset = Place(f"{name}.weight", "D"), Place(f"{name}.bias", "D")
    return {f"{leaf}_scale": scale, f"{leaf}_offset": offset}


def _fused(name: str, matrix: str, bias: str) -> dict[str, Place]:
    """Return the places of queries, keys and values that lie in one tensor."""
    rows = {}
    for part, letter in enumerate("qkv"):
        heads = "H" if letter == "q" else "G"
        rows[f"w_{letter}"] = Place(f"{name}.weight", matrix.replace("H", heads), part)
        rows[f"b_{letter}"] = Place(f"{name}.bias", bias.replace("H", heads), part)
    return rows


_LLAMA = {
    "embedding": Place("embed_tokens.weight", "V D"),
    "attention_norm_scale": Place("layers.{}.input_layernorm.weight", "D"),
    "w_q": Place("layers.{}.self_attn.q_proj.weight", "Hk D"),
    "w_k": Place("layers.{}.self_attn.k_proj.weight", "Gk D"),
    "w_v": Place("layers.{}.self_attn.v_proj.weight", "Gk D"),
    "w_o": Place("layers.{}.self_attn.o_proj.weight", "D Hk"),
    "b_q": Place("layers.{}.self_attn.q_proj.bias", "Hk"),
    "b_k": Place("layers.{}.self_attn.k_proj.bias", "Gk"),
    "b_v": Place("layers.{}.self_attn.v_proj.bias", "Gk"),
    "b_o": Place("layers.{}.self_attn.o_proj.bias", "D"),
    "q_norm_scale": Place("layers.{}.self_attn.q_norm.weight", "k"),
    "k_norm_scale": Place("layers.{}.self_attn.k_norm.weight", "k"),
    "mlp_norm_scale": Place("layers.{}.post_attention_layernorm.weight", "D"),
    "mlp_in": Place("layers.{}.mlp.up_proj.weight", "m D"),
    "mlp_gate": Place("layers.{}.mlp.gate_proj.weight", "m D"),
    "mlp_out": Place("layers.{}.mlp.down_proj.weight", "D m"),
    "final_norm_scale": Place("norm.weight", "D"),
    "unembedding": Place("lm_head.weight", "V D"),
}

# Its linear maps are convolutions of width 1, which hold the transpose.
_GPT2 = {
    "embedding": Place("wte.weight", "V D"),
    "positions": Place("wpe.weight", "C D"),
    **_norm("attention_norm", "h.{}.ln_1"),
    **_fused("h.{}.attn.c_attn", "D 3Hk", "3Hk"),
    "w_o": Place("h.{}.attn.c_proj.weight", "Hk D"),
    "b_o": Place("h.{}.attn.c_proj.bias", "D"),
    **_norm("mlp_norm", "h.{}.ln_2"),
    "mlp_in": Place("h.{}.mlp.c_fc.weight", "D m"),
    "mlp_in_bias": Place("h.{}.mlp.c_fc.bias", "m"),
    "mlp_out": Place("h.{}.mlp.c_proj.weight", "m D"),
    "mlp_out_bias": Place("h.{}.mlp.c_proj.bias", "D"),
    **_norm("final_norm", "ln_f"),
    "unembedding": Place("lm_head.weight", "V D"),
}

# One norm stands for two: attention and MLP read the same.
_GPTJ = {
    "embedding": Place("wte.weight", "V D"),
    **_norm("attention_norm", "h.{}.ln_1"),
    **_norm("mlp_norm", "h.{}.ln_1"),
    "w_q": Place("h.{}.attn.q_proj.weight", "Hk D"),
    "w_k": Place("h.{}.attn.k_proj.weight", "Gk D"),
    "w_v": Place("h.{}.attn.v_proj.weight", "Gk D"),
    "w_o": Place("h.{}.attn.out_proj.weight", "D Hk"),
    "mlp_in": Place("h.{}.mlp.fc_in.weight", "m D"),
    "mlp_in_bias": Place("h.{}.mlp.fc_in.bias", "m"),
    "mlp_out": Place("h.{}.mlp.fc_out.weight", "D m"),
    "mlp_out_bias": Place("h.{}.mlp.fc_out.bias", "D"),
    **_norm("final_norm", "ln_f"),
    "unembedding": Place("lm_head.weight", "V D"),
    "unembedding_bias": Place("lm_head.bias", "V"),
}

_NEOX = {
    "embedding": Place("embed_in.weight", "V D"),
    **_norm("attention_norm", "layers.{}.input_layernorm"),
    **_fused("layers.{}.attention.query_key_value", "H3k D", "H3k"),
    "w_o": Place("layers.{}.attention.dense.weight", "D Hk"),
    "b_o": Place("layers.{}.attention.dense.bias", "D"),
    **_norm("mlp_norm", "layers.{}.post_attention_layernorm"),
    "mlp_in": Place("layers.{}.mlp.dense_h_to_4h.weight", "m D"),
    "mlp_in_bias": Place("layers.{}.mlp.dense_h_to_4h.bias", "m"),
    "mlp_out": Place("layers.{}.mlp.dense_4h_to_h.weight", "D m"),
    "mlp_out_bias": Place("layers.{}.mlp.dense_4h_to_h.bias", "D"),
    **_norm("final_norm", "final_layer_norm"),
    "unembedding": Place("embed_out.weight", "V D"),
}

_BUFFERS = r".*(attn|attention)\.(bias|masked_bias)|(.*\.)?rotary_emb\.\w+"

# The state dicts of transformers; llama.cpp has the same tensors under names of its own.
TRANSFORMERS = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3"), Names(_LLAMA, "model.", _BUFFERS)),
    "gemma": Names(_LLAMA, "model.", _BUFFERS, scales_less_one=True),
    "gpt2": Names(_GPT2, "transformer.", _BUFFERS),
    "gptj": Names(_GPTJ, "transformer.", _BUFFERS, interleaved=True),
    "gpt_neox": Names(_NEOX, "gpt_neox.", _BUFFERS),
}
