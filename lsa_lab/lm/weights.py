"""The weights of a decoder, under the names of ``transformer.Params``."""

import dataclasses
from typing import Any

import chex
import flax.struct
import jax
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.lm.config import Config


def _leaf(axes: str, tensor: str, **options: Any) -> Any:
    return flax.struct.field(metadata={"axes": axes, "tensor": tensor}, **options)


class Params(flax.struct.PyTreeNode):
    """Weights by layer, head and group; a part that the Config does not have is None.

    A letter is an axis: L layers, H heads, G groups, keys of width k, a stream of width D, an MLP
    of width m, V words, C places. The tensor has the name that llama.cpp gives it, in every layer.
    The factor 1/√k of the scores is part of W_Q and b_q, as everywhere in this library, or of the
    scale of queries that are normed.
    """

    embedding: Array = _leaf("VD", "token_embd.weight")
    w_q: Array = _leaf("LHkD", "attn_q.weight")
    w_k: Array = _leaf("LGkD", "attn_k.weight")
    w_v: Array = _leaf("LGkD", "attn_v.weight")
    w_o: Array = _leaf("LHDk", "attn_output.weight")
    attention_norm_scale: Array = _leaf("LD", "attn_norm.weight")
    mlp_norm_scale: Array = _leaf("LD", "ffn_norm.weight")
    mlp_in: Array = _leaf("LmD", "ffn_up.weight")
    mlp_out: Array = _leaf("LDm", "ffn_down.weight")
    final_norm_scale: Array = _leaf("D", "output_norm.weight")
    mlp_gate: Array | None = _leaf("LmD", "ffn_gate.weight", default=None)
    attention_norm_offset: Array | None = _leaf("LD", "attn_norm.bias", default=None)
    mlp_norm_offset: Array | None = _leaf("LD", "ffn_norm.bias", default=None)
    final_norm_offset: Array | None = _leaf("D", "output_norm.bias", default=None)
    b_q: Array | None = _leaf("LHk", "attn_q.bias", default=None)
    b_k: Array | None = _leaf("LGk", "attn_k.bias", default=None)
    b_v: Array | None = _leaf("LGk", "attn_v.bias", default=None)
    q_norm_scale: Array | None = _leaf("Lk", "attn_q_norm.weight", default=None)
    k_norm_scale: Array | None = _leaf("Lk", "attn_k_norm.weight", default=None)
    b_o: Array | None = _leaf("LD", "attn_output.bias", default=None)
    mlp_in_bias: Array | None = _leaf("Lm", "ffn_up.bias", default=None)
    mlp_out_bias: Array | None = _leaf("LD", "ffn_down.bias", default=None)
    positions: Array | None = _leaf("CD", "position_embd.weight", default=None)
    unembedding: Array | None = _leaf("VD", "output.weight", default=None)
    unembedding_bias: Array | None = _leaf("V", "output.bias", default=None)


AXES, TENSORS = (
    {field.name: field.metadata[key] for field in dataclasses.fields(Params)}
    for key in ("axes", "tensor")
)


def letter_sizes(config: Config) -> dict[str, int]:
    """Return the numbers that the letters of axes stand for."""
    sizes = dict(L=config.num_layers, H=config.num_heads, G=config.num_groups, k=config.key_width)
    return sizes | dict(D=config.width, m=config.mlp_width, V=config.vocabulary, C=config.context)


def shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Return the shape of every leaf that a decoder of this config has."""
    parts = {
        "mlp_gate": config.gated,
        "attention_norm_offset mlp_norm_offset final_norm_offset": config.norm == "layer",
        "b_q b_k b_v": config.query_biases,
        "q_norm_scale k_norm_scale": config.key_norm,
        "b_o": config.write_biases,
        "mlp_in_bias mlp_out_bias": config.mlp_biases,
        "positions": config.learned_positions,
        "unembedding": not config.tied,
        "unembedding_bias": config.unembedding_bias,
    }
    absent = {name for names, has in parts.items() if not has for name in names.split()}
    size = letter_sizes(config)
    return {
        name: tuple(size[letter] for letter in axes)
        for name, axes in AXES.items()
        if name not in absent
    }


def init(key: Array, config: Config, dtype: DTypeLike | None = None) -> Params:
    """Draw Gaussian weights of variance 1 / (number of inputs); norms near 1, biases near 0.

    Nothing is exactly 0 or 1, so that no part of a random decoder can be left out unnoticed.
    """
    leaves, named = {}, shapes(config)
    for (name, shape), draw in zip(named.items(), jax.random.split(key, len(named)), strict=True):
        normal = jax.random.normal(draw, shape, dtype)
        if name.endswith("_scale"):
            leaves[name] = 1 + 0.1 * normal
        elif name.startswith("b_") or name.endswith(("_bias", "_offset", "positions")):
            leaves[name] = 0.1 * normal
        else:
            inputs = shape[-1] * (config.num_heads if name == "w_o" else 1)
            leaves[name] = inputs**-0.5 * normal
        if name in ("w_q", "q_norm_scale"):
            leaves[name] *= config.key_width**-0.5
    return Params(**leaves)


def check_params(params: Params, config: Config) -> None:
    """Raise unless the leaves are those of the config, each in its shape."""
    expected = shapes(config)
    for name, leaf in vars(params).items():
        if (leaf is None) != (name not in expected):
            is_there = "lacks" if leaf is None else "has"
            raise ValueError(f"params {is_there} {name}, which does not fit the config")
        if leaf is not None:
            chex.assert_shape(leaf, expected[name], custom_message=f"{name} does not fit")
