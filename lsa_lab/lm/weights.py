"""The weights of a decoder, under the names of ``transformer.Params``."""

import math

import chex
import flax.struct
import jax
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.lm.config import Config


class Params(flax.struct.PyTreeNode):
    """Weights per layer, head and group; what the Config leaves out is None.

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


# The leaves that no layer owns.
OUTSIDE = (
    "embedding",
    "positions",
    "final_norm_scale",
    "final_norm_offset",
    "unembedding",
    "unembedding_bias",
)


def shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """The shape of every leaf that a decoder of this config has."""
    layers, heads, groups = config.num_layers, config.num_heads, config.num_groups
    k, width, m, vocabulary = config.key_width, config.width, config.mlp_width, config.vocabulary
    rows = (layers, width)
    has = {
        "embedding": (vocabulary, width),
        "w_q": (layers, heads, k, width),
        "w_k": (layers, groups, k, width),
        "w_v": (layers, groups, k, width),
        "w_o": (layers, heads, width, k),
        "attention_norm_scale": rows,
        "mlp_norm_scale": rows,
        "mlp_in": (layers, m, width),
        "mlp_out": (layers, width, m),
        "final_norm_scale": (width,),
    }
    if config.gated:
        has["mlp_gate"] = (layers, m, width)
    if config.norm == "layer":
        has |= {"attention_norm_offset": rows, "mlp_norm_offset": rows}
        has["final_norm_offset"] = (width,)
    if config.query_biases:
        has |= {"b_q": (layers, heads, k), "b_k": (layers, groups, k), "b_v": (layers, groups, k)}
    if config.key_norm:
        has |= {"q_norm_scale": (layers, k), "k_norm_scale": (layers, k)}
    if config.write_biases:
        has["b_o"] = rows
    if config.mlp_biases:
        has |= {"mlp_in_bias": (layers, m), "mlp_out_bias": rows}
    if config.learned_positions:
        has["positions"] = (config.context, width)
    if not config.tied:
        has["unembedding"] = (vocabulary, width)
    if config.unembedding_bias:
        has["unembedding_bias"] = (vocabulary,)
    return has


def init(key: Array, config: Config, dtype: DTypeLike | None = None) -> Params:
    """Gaussian weights of variance 1 / (number of inputs); norms near 1, the rest near 0.

    Nothing is exactly 0 or 1, so that no part of a random decoder can be left out unnoticed.
    """
    leaves = {}
    for (name, shape), draw in zip(
        shapes(config).items(), jax.random.split(key, len(shapes(config))), strict=True
    ):
        normal = jax.random.normal(draw, shape, dtype)
        if name.endswith("_scale"):
            leaves[name] = 1 + 0.1 * normal
            if name == "q_norm_scale":
                leaves[name] *= config.key_width**-0.5
        elif name.startswith("b_") or name.endswith(("_bias", "_offset", "positions")):
            leaves[name] = 0.1 * normal
        else:
            inputs = shape[-1] * (config.num_heads if name == "w_o" else 1)
            scale = inputs**-0.5 * (config.key_width**-0.5 if name == "w_q" else 1)
            leaves[name] = scale * normal
    return Params(**leaves)


def of_layers(params: Params) -> Params:
    """The leaves that layers own, with their axis L in front; the others are None."""
    return params.replace(**dict.fromkeys(OUTSIDE))


def count(config: Config) -> int:
    """The numbers that a decoder of this config holds."""
    return sum(math.prod(shape) for shape in shapes(config).values())


def check_params(params: Params, config: Config) -> None:
    """Raise unless the leaves are those of the config, each in its shape."""
    expected = shapes(config)
    for name, leaf in vars(params).items():
        if (leaf is None) != (name not in expected):
            is_there = "lacks" if leaf is None else "has"
            raise ValueError(f"params {is_there} {name}, which does not fit the config")
        if leaf is not None:
            chex.assert_shape(leaf, expected[name], custom_message=f"{name} does not fit")
