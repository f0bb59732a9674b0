"""The weights of a decoder, under the names of ``transformer.Params``."""

import chex
import flax.struct
import jax
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.lm.config import Config
from lsa_lab.models.blocks import OUTSIDE_LAYERS


class Params(flax.struct.PyTreeNode):
    """Weights by layer, head and group; a part that the Config does not have is None.

    The factor 1/√k of the scores is part of W_Q and b_q, as everywhere in this library, or of the
    scale of queries that are normed.
    """

    embedding: Array  # [V, D]
    w_q: Array  # [L, H, k, D]
    w_k: Array  # [L, G, k, D]
    w_v: Array  # [L, G, k, D]
    w_o: Array  # [L, H, D, k]
    attention_norm_scale: Array  # [L, D]
    mlp_norm_scale: Array  # [L, D]
    mlp_in: Array  # [L, m, D]
    mlp_out: Array  # [L, D, m]
    final_norm_scale: Array  # [D]
    mlp_gate: Array | None = None  # [L, m, D]
    attention_norm_offset: Array | None = None  # [L, D]
    mlp_norm_offset: Array | None = None  # [L, D]
    final_norm_offset: Array | None = None  # [D]
    b_q: Array | None = None  # [L, H, k]
    b_k: Array | None = None  # [L, G, k]
    b_v: Array | None = None  # [L, G, k]
    b_o: Array | None = None  # [L, D]
    q_norm_scale: Array | None = None  # [L, k]
    k_norm_scale: Array | None = None  # [L, k]
    mlp_in_bias: Array | None = None  # [L, m]
    mlp_out_bias: Array | None = None  # [L, D]
    positions: Array | None = None  # [context, D]
    unembedding: Array | None = None  # [V, D]
    unembedding_bias: Array | None = None  # [V]


# The axes of every leaf, without the L of those of a layer; keys are drawn in this order.
AXES = dict(embedding="VD", w_q="HkD", w_k="GkD", w_v="GkD", w_o="HDk", attention_norm_scale="D")
AXES |= dict(mlp_norm_scale="D", mlp_in="mD", mlp_out="Dm", final_norm_scale="D", mlp_gate="mD")
AXES |= dict.fromkeys(("attention_norm_offset", "mlp_norm_offset", "final_norm_offset"), "D")
AXES |= dict(b_q="Hk", b_k="Gk", b_v="Gk", q_norm_scale="k", k_norm_scale="k", b_o="D")
AXES |= dict(mlp_in_bias="m", mlp_out_bias="D", positions="CD", unembedding="VD")
AXES |= dict(unembedding_bias="V")


def letter_sizes(config: Config) -> dict[str, int]:
    """Return the numbers that the letters of axes and layouts stand for."""
    sizes = dict(L=config.num_layers, H=config.num_heads, G=config.num_groups, k=config.key_width)
    sizes |= dict(D=config.width, m=config.mlp_width, V=config.vocabulary, C=config.context)
    return sizes | {"3": 3}


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
        name: tuple(size[letter] for letter in ("" if name in OUTSIDE_LAYERS else "L") + axes)
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
        elif _is_bias(name) or name == "positions":
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


def _is_bias(name: str) -> bool:
    return name.startswith("b_") or name.endswith(("_bias", "_offset"))
