"""Layers shared by the models: gates, masks, scores, reads, norm, MLP and the scan over layers."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import check_finite

Kernel = Literal["softmax", "linear"]
Keys = Literal["demonstrations", "all", "causal"]
Out = TypeVar("Out")  # a pytree of arrays

# The leaves of Params, here and in ``lm``, without an axis of layers.
OUTSIDE_LAYERS = (
    *("embedding", "unembedding", "unembedding_bias", "positions"),
    *("read_in", "read_in_bias", "read_out", "read_out_bias"),
    *("final_norm_scale", "final_norm_offset"),
)

_SHALLOW = 8  # a rolled scan costs a shallow network three quarters of its speed on CPU
LONG = 2048  # more tokens than this: memory counts before speed
_CHUNK = 32  # causal linear attention: tokens whose scores are formed at once
_EPSILON = 1e-5  # layer norm: added to the variance


def run_layers(
    layer: Callable[[Array, Any], tuple[Array, Out]],
    stream: Array,  # [T, D]
    weights: Any,  # every leaf [L, ...]
    *,
    heavy: bool,
) -> Out:  # every leaf [L, ...]
    """Scan the L layers and return their second outputs; the first is the next layer's stream.

    Args:
        layer: maps (stream, weights of one layer) to (stream, output).
        heavy: the layer forms several arrays [H, T, k]. For a long prompt the backward pass then
            keeps the stream alone and forms them again, one layer at a time.

    Raises:
        TypeError: the weights have a wider dtype than the stream.
    """
    leaves = jax.tree.leaves(weights)
    dtype, *dtypes = map(jnp.result_type, (stream, *leaves))
    widest = max(dtypes, key=lambda dtype: dtype.itemsize)
    if jnp.issubdtype(widest, jnp.floating) and widest.itemsize > dtype.itemsize:
        raise TypeError(f"tokens are {dtype} and weights {widest}: cast one to the other's")
    num_layers = leaves[0].shape[0]
    unroll = num_layers if num_layers <= _SHALLOW else 1
    if heavy and stream.shape[0] > LONG:  # unrolled, the compiler would undo the checkpoint
        layer, unroll = jax.checkpoint(layer, prevent_cse=False), 1
    return jax.lax.scan(layer, stream, weights, unroll=unroll)[1]


def layer_params(params: Any) -> Any:
    """Return the Params with None for each leaf without an axis of layers."""
    return params.replace(**{name: None for name in OUTSIDE_LAYERS if hasattr(params, name)})


def check_tokens(tokens: Array | jax.ShapeDtypeStruct) -> None:
    """Raise unless the tokens are the floats of one prompt."""
    chex.assert_rank(
        tokens, 2, custom_message="forward takes one prompt [T, e]; use jax.vmap for a batch"
    )
    if not jnp.issubdtype(tokens.dtype, jnp.floating) or not tokens.dtype.isnative:
        raise TypeError(f"tokens are {tokens.dtype}: give floats, say tokens.astype(float)")


def head_gates(head_mask: Array | None, num_layers: int, num_heads: int, dtype: Any) -> Array:
    """Return the gate of each head [L, H]: 1, or what ``head_mask`` holds."""
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if head_mask is None:
        return jnp.ones((num_layers, num_heads), dtype)
    chex.assert_shape(
        head_mask, (num_layers, num_heads), custom_message="head_mask has one gate per head"
    )
    check_finite(head_mask, "head_mask", "a gate is a number, 0 for a head that is shut")
    return jnp.asarray(head_mask, dtype)


def key_mask(keys: Keys, num_tokens: int, rows: Array | None = None) -> Array:  # [1, 1, T, T]
    """Return which tokens (columns) may be read by all tokens, or by those of ``rows``."""
    column = jnp.arange(num_tokens)[None, :]
    row = (jnp.arange(num_tokens) if rows is None else rows)[:, None]
    is_query = column == num_tokens - 1
    allowed = {
        "demonstrations": ~is_query | (row < 0),
        "all": (row >= 0) & (column >= 0),
        "causal": (column <= row) & ~is_query,
    }[keys]
    return allowed[None, None]


def read_causally(queries: Array, keys: Array, values: Array) -> Array:
    """Return Σ_{i≤t} (k_i · q_t) v_i for every t, in memory T · chunk: [T, k] x 2, [T, v] -> same.

    tril(Q Kᵀ) V = prefix moments Σ k_i v_iᵀ for whole chunks, and scores only inside a chunk
    (docs/theory, "Reassociation").
    """
    num_tokens = queries.shape[0]
    num_chunks = -(-num_tokens // _CHUNK)
    size = -(-num_tokens // num_chunks)
    padding = num_chunks * size - num_tokens

    def chunked(rows: Array) -> Array:  # [m, c, width]
        return jnp.pad(rows, ((0, padding), (0, 0))).reshape(num_chunks, size, -1)

    queries, keys, values = chunked(queries), chunked(keys), chunked(values)
    moments = jnp.cumsum(jnp.einsum("mik,miv->mkv", keys[:-1], values[:-1]), axis=0)
    earlier = jnp.pad(moments, ((1, 0), (0, 0), (0, 0)))
    within = jnp.tril(scores(queries, keys))
    read = queries @ earlier + within @ values
    return read.reshape(num_chunks * size, -1)[:num_tokens]


def scores(queries: Array, keys: Array) -> Array:  # [..., t, k], [..., i, k] -> [..., t, i]
    """Return the score k_i · q_t with which token t reads token i."""
    return queries @ keys.swapaxes(-1, -2)


def attention_weights(
    queries: Array, keys: Array, mask: Array, kernel: Kernel
) -> Array:  # [..., T, T]
    """Return a_ti: the scores of the readable i and 0 elsewhere, or their softmax over i.

    For a softmax every row of the mask needs a readable key.
    """
    if kernel == "softmax":
        return jax.nn.softmax(jnp.where(mask, scores(queries, keys), -jnp.inf))
    return jnp.where(mask, scores(queries, keys), 0)


def read_softmax(
    queries: Array, keys: Array, values: Array, mask: Array
) -> Array:  # [..., t, k], [..., i, k], [..., i, v] -> [..., t, v]
    """Return Σ_i a_ti v_i, a the softmax over the readable i; values are read before the division,
    which is then one of [t, v] in place of [t, i]."""
    readable = jnp.where(mask, scores(queries, keys), -jnp.inf)
    powers = jnp.exp(readable - jax.lax.stop_gradient(readable.max(-1, keepdims=True)))
    return (powers @ values) / powers.sum(-1, keepdims=True)


def layer_norm(rows: Array, scale: Array, offset: Array) -> Array:  # [T, D], [D], [D] -> [T, D]
    """Return (u - mean u) / √(var u + ε) ⊙ scale + offset of each token (Ba et al. 1607.06450)."""
    centred = rows - rows.mean(-1, keepdims=True)
    deviation = jnp.sqrt((centred**2).mean(-1, keepdims=True) + _EPSILON)
    return centred / deviation * scale[None] + offset[None]


def mlp(rows: Array, w_in: Array, b_in: Array, w_out: Array, b_out: Array) -> Array:  # [T, D]
    """Return W_out gelu(W_in u + b_in) + b_out of each token; gelu in its tanh form (GPT-2).

    The backward pass computes gelu again, which costs less than to keep its parts in memory.
    """
    hidden = jax.checkpoint(jax.nn.gelu, prevent_cse=False)(rows @ w_in.T + b_in[None])
    return hidden @ w_out.T + b_out[None]
