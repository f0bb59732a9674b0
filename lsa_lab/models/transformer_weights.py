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
    num_layers, num_heads = config.num_layers, config.num_heads
    k, width = config.key_width, config.stream_width
    present = present_heads(config)[:, :, None, None]

    init_scale = float(config.init_scale)  # NumPy's would widen a dtype

    def draw(key: Array, *shape: int, inputs: float, scale: float = init_scale) -> Array:
        return scale * inputs**-0.5 * jax.random.normal(key, shape, dtype)

    def heads(key: Array, inputs: float) -> Array:
        return jnp.where(present, draw(key, num_layers, num_heads, k, width, inputs=inputs), 0)

    writers = jnp.asarray(config.head_counts, float if dtype is None else dtype)
    params = Params(
        w_q=heads(key_q, width * k**0.5),
        w_k=heads(key_k, width * k**0.5),
        w_v=heads(key_v, width),
        w_o=heads(key_o, k).swapaxes(2, 3) / jnp.sqrt(writers)[:, None, None, None],
    )
    rows, m = jnp.zeros((num_layers, width), dtype), config.mlp_width
    if config.width is not None:
        read_in = draw(key_in, width, config.token_width, inputs=config.token_width, scale=1.0)
        read_out = draw(key_out, width, inputs=width, scale=1.0)
        params = params.replace(read_in=read_in, read_out=read_out)
    if config.norm:
        params = params.replace(attention_norm_scale=rows + 1, attention_norm_offset=rows)
    if m is not None:
        params = params.replace(
            mlp_norm_scale=rows + 1 if config.norm else None,
            mlp_norm_offset=rows if config.norm else None,
            mlp_in=draw(key_mlp_in, num_layers, m, width, inputs=width),
            mlp_in_bias=jnp.zeros((num_layers, m), dtype),
            mlp_out=draw(key_mlp_out, num_layers, width, m, inputs=m),
            mlp_out_bias=rows,
        )
    return _add_extras(params, config)


def _add_extras(params: Params, config: Config) -> Params:
    """Add biases and positions, all zero, and a final norm, if the config has them."""
    dtype, width = params.w_q.dtype, config.stream_width
    if config.biases:
        heads, rows = jnp.zeros_like(params.w_q[..., 0]), jnp.zeros_like(params.w_o[:, 0, :, 0])
        params = params.replace(b_q=heads, b_k=heads, b_v=heads, b_o=rows)
    if config.biases and config.width is not None:
        params = params.replace(
            read_in_bias=jnp.zeros(width, dtype), read_out_bias=jnp.zeros((), dtype)
        )
    if config.num_positions is not None:
        params = params.replace(positions=jnp.zeros((config.num_positions, width), dtype))
    if config.final_norm:
        scale, offset = jnp.ones(width, dtype), jnp.zeros(width, dtype)
        params = params.replace(final_norm_scale=scale, final_norm_offset=offset)
    return params


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
