"""The weights of a transformer."""

import functools

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.models.blocks import check_tokens
from lsa_lab.models.transformer_config import Config


class Params(flax.struct.PyTreeNode):
    """Weights per layer and head; None where the Config has no such part; absent heads are zero."""

    w_q: Array  # [L, H, k, D]
    w_k: Array  # [L, H, k, D]
    w_v: Array  # [L, H, k, D]
    w_o: Array  # [L, H, D, k]
    read_in: Array | None = None  # [D, e]
    read_out: Array | None = None  # [D]
    attention_norm_scale: Array | None = None  # [L, D]
    attention_norm_offset: Array | None = None  # [L, D]
    mlp_norm_scale: Array | None = None  # [L, D]
    mlp_norm_offset: Array | None = None  # [L, D]
    mlp_in: Array | None = None  # [L, m, D]
    mlp_in_bias: Array | None = None  # [L, m]
    mlp_out: Array | None = None  # [L, D, m]
    mlp_out_bias: Array | None = None  # [L, D]
    b_q: Array | None = None  # [L, H, k]
    b_k: Array | None = None  # [L, H, k]
    b_v: Array | None = None  # [L, H, k]
    b_o: Array | None = None  # [L, D]
    read_in_bias: Array | None = None  # [D]
    read_out_bias: Array | None = None  # []
    positions: Array | None = None  # [P, D]
    final_norm_scale: Array | None = None  # [D]
    final_norm_offset: Array | None = None  # [D]


def init(key: Array, config: Config, dtype: DTypeLike | None = None) -> Params:
    """Draw Gaussian weights with entries of variance init_scale² / (number of inputs).

    W_Q and W_K share a further 1/√k, so that the variance of a score does not depend on k. Biases
    and positions are zero.
    """
    key_q, key_k, key_v, key_o, key_in, key_out, key_mlp_in, key_mlp_out = jax.random.split(key, 8)
    L, H, D = config.num_layers, config.num_heads, config.stream_width
    k, m, e = config.key_width, config.mlp_width, config.token_width
    init_scale = float(config.init_scale)  # NumPy's would widen a dtype

    def draw(key: Array, *shape: int, inputs: float, scale: float = init_scale) -> Array:
        return scale * inputs**-0.5 * jax.random.normal(key, shape, dtype)

    def heads(key: Array, inputs: float) -> Array:
        present = present_heads(config)[:, :, None, None]
        return jnp.where(present, draw(key, L, H, k, D, inputs=inputs), 0)

    writers = jnp.asarray(config.head_counts, float if dtype is None else dtype)
    leaves = {
        "w_q": heads(key_q, D * k**0.5),
        "w_k": heads(key_k, D * k**0.5),
        "w_v": heads(key_v, D),
        "w_o": heads(key_o, k).swapaxes(2, 3) / jnp.sqrt(writers)[:, None, None, None],
    }
    rows, zeros = jnp.zeros((L, D), dtype), jnp.zeros(D, dtype)
    if config.norm:
        leaves |= dict(attention_norm_scale=rows + 1, attention_norm_offset=rows)
    if m is not None:
        leaves["mlp_in"] = draw(key_mlp_in, L, m, D, inputs=D)
        leaves["mlp_out"] = draw(key_mlp_out, L, D, m, inputs=m)
        leaves |= dict(mlp_in_bias=jnp.zeros((L, m), dtype), mlp_out_bias=rows)
        leaves |= dict(mlp_norm_scale=rows + 1, mlp_norm_offset=rows) if config.norm else {}
    if config.biases:
        leaves |= dict.fromkeys(("b_q", "b_k", "b_v"), jnp.zeros((L, H, k), dtype)) | {"b_o": rows}
    if config.width is not None:
        leaves["read_in"] = draw(key_in, D, e, inputs=e, scale=1.0)
        leaves["read_out"] = draw(key_out, D, inputs=D, scale=1.0)
        leaves |= dict(read_in_bias=zeros, read_out_bias=zeros[0]) if config.biases else {}
    if config.num_positions is not None:
        leaves["positions"] = jnp.zeros((config.num_positions, D), dtype)
    if config.final_norm:
        leaves |= dict(final_norm_scale=zeros + 1, final_norm_offset=zeros)
    return Params(**leaves)


def present_heads(config: Config) -> Array:  # [L, H]
    """Return True for each head that exists: some layers may have fewer than H."""
    return jnp.arange(config.num_heads)[None] < jnp.asarray(config.head_counts)[:, None]


def check_params(params: Params, config: Config) -> None:
    """Raise unless every array has the shape that ``init`` gives it."""
    chex.assert_trees_all_equal_shapes(
        params, _shapes(config), custom_message="params do not fit the config; draw them with init"
    )


@functools.cache
def _shapes(config: Config) -> Params:
    return jax.eval_shape(lambda key: init(key, config), jax.random.key(0))


def check_inputs(params: Params, tokens: Array | jax.ShapeDtypeStruct, config: Config) -> None:
    """Raise unless the arguments of ``transformer.forward`` fit together."""
    check_tokens(tokens)
    num_tokens, e = tokens.shape
    if e != config.token_width:
        raise ValueError(f"tokens are {e} wide, config.token_width is {config.token_width}")
    if config.layout == "merged" and num_tokens < 2:
        raise ValueError(f"tokens has {num_tokens} rows; a query needs a demonstration")
    if config.layout == "interleaved" and num_tokens % 2 == 0:
        raise ValueError(
            f"tokens has {num_tokens} rows; x_1, y_1, ..., x_query are an odd number of them"
        )
    if config.num_positions is not None and num_tokens > config.num_positions:
        raise ValueError(
            f"tokens has {num_tokens} rows, and config.num_positions is {config.num_positions}: "
            "give fewer demonstrations"
        )
    check_params(params, config)
