"""The layer of a decoder, and what it adds to the stream.

With u = norm(h), keys and values of head h's group g, and R_t the rotation of place t, a layer adds
to token t of the stream

    Σ_h W_O^h Σ_{i≤t} a_ti (W_V^g u_i + b_v) + b_o,
    a_ti = softmax_i (R_i (W_K^g u_i + b_k)) · (R_t (W_Q^h u_t + b_q)),

and W_out φ(u') + b_out of the stream that attention has left (Vaswani et al. 1706.03762; rotary
places: Su et al. 2104.09864), or of the one that attention has read where the config says
``parallel``. u' = norm(h) has its own scale, and φ(u) = act(W_gate u) ⊙ W_in u where there is
a gate (Shazeer 2002.05202), act(W_in u + b_in) where there is none. With ``key_norm`` queries and
keys are normed before they are turned, each with a scale of k numbers that all heads share.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import flax.struct
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.lm.config import Config
from lsa_lab.lm.weights import Params


class Past(flax.struct.PyTreeNode):
    """The keys, turned already, and the values of the tokens before a prompt."""

    keys: Array  # [L, G, P, k]
    values: Array  # [L, G, P, k]

    @property
    def num_tokens(self) -> int:
        """Return P, the place of the first token after them."""
        return self.keys.shape[-2]


class Layer(NamedTuple):
    """The inputs of one layer: leaves without the axis L."""

    params: Params
    gate: Array | None = None  # [H]
    past: Past | None = None  # keys and values [G, P, k]


def step(
    stream: Array, layer: Layer, config: Config
) -> tuple[Array, Array, Past]:  # [T, D], [H, T, D], [G, T, k] x 2
    """Return the stream after one layer, the heads' writes, and its tokens' keys and values."""
    params = layer.params
    rows = norm(stream, params.attention_norm_scale, params.attention_norm_offset, config)
    read, left = _attend(rows, layer, config)  # [T, H, k]
    if layer.gate is not None:
        read = read * layer.gate[None, :, None]
    heads = jnp.einsum("hdk,thk->htd", params.w_o, read)
    after = stream + jnp.einsum("hdk,thk->td", params.w_o, read)
    after = add_offset(after, params.b_o)
    source = stream if config.parallel else after
    rows = norm(source, params.mlp_norm_scale, params.mlp_norm_offset, config)
    return after + _mlp(rows, params, config), heads, left


def step_prefix(prefix: Array, layer: Layer, config: Config) -> tuple[Array, Layer]:  # [P, D]
    """Return a prefix after one layer, and the layer with the prefix as its past."""
    if not prefix.shape[0]:
        return prefix, layer
    prefix, _, past = step(prefix, layer, config)
    return prefix, layer._replace(past=past)


def norm(rows: Array, scale: Array, offset: Array | None, config: Config) -> Array:  # [..., D]
    """Return u ⊙ scale / √(mean u² + ε) + offset, of the centred u in a layer norm."""
    wide = rows.astype(widen_dtype(rows.dtype))  # half precision overflows
    if config.norm == "layer":
        wide = wide - wide.mean(-1, keepdims=True)
    unit = wide * jax.lax.rsqrt((wide**2).mean(-1, keepdims=True) + config.norm_epsilon)
    return add_offset(unit.astype(rows.dtype) * jnp.broadcast_to(scale, rows.shape), offset)


def widen_dtype(dtype: DTypeLike) -> DTypeLike:
    """Return float32 for half precision: sums of squares, softmax and angles are formed in it."""
    return jnp.float32 if jnp.finfo(dtype).bits < 32 else dtype


def _attend(rows: Array, layer: Layer, config: Config) -> tuple[Array, Past]:  # [T, H, k]
    """Return Σ_i a_ti v_i for every head; the past is read where it is, never copied."""
    queries, keys, values = _project_all(rows, layer, config)
    scores = jnp.einsum("grtk,gik->grti", queries, keys)
    readable = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    scores = jnp.where(readable[None, None], scores, -jnp.inf)
    past = Past(keys[:, :0], values[:, :0]) if layer.past is None else layer.past
    earlier = jnp.einsum("grtk,gik->grti", queries, past.keys)
    wide = jnp.concatenate([earlier, scores], axis=-1).astype(widen_dtype(rows.dtype))
    weights = jax.nn.softmax(wide).astype(rows.dtype)
    earlier, present = jnp.split(weights, [past.num_tokens], axis=-1)
    read = jnp.einsum("grti,gik->tgrk", present, values)
    read = read + jnp.einsum("grti,gik->tgrk", earlier, past.values)
    return read.reshape(rows.shape[0], config.num_heads, config.key_width), Past(keys, values)


def _project_all(
    rows: Array, layer: Layer, config: Config
) -> tuple[Array, Array, Array]:  # [G, H/G, T, k], [G, T, k] x 2
    """Return queries, keys and values, the first two turned by their places."""
    params = layer.params
    queries = _project(params.w_q, params.b_q, rows)
    keys = _project(params.w_k, params.b_k, rows)
    values = _project(params.w_v, params.b_v, rows)
    if params.q_norm_scale is not None and params.k_norm_scale is not None:
        queries = norm(queries, params.q_norm_scale, None, config)
        keys = norm(keys, params.k_norm_scale, None, config)
    if config.rotary_width is not None:
        start = 0 if layer.past is None else layer.past.num_tokens
        queries, keys = (
            _rotate(each, start, config.rotary_width, config) for each in (queries, keys)
        )
    sharing = config.num_heads // config.num_groups
    return queries.reshape(config.num_groups, sharing, *queries.shape[1:]), keys, values


def _rotate(rows: Array, start: int, r: int, config: Config) -> Array:  # [H, T, k]
    """Turn the first r coordinates of every row in pairs, by angles t / base^(2i/r)."""
    wide = widen_dtype(rows.dtype)
    speeds = config.rotary_base ** (-jnp.arange(0, r, 2, dtype=wide) / r)
    if config.rotary_scaling is not None:
        factor, low, high, original = config.rotary_scaling
        kept = jnp.clip((original * speeds / (2 * jnp.pi) - low) / (high - low), 0, 1)
        speeds = speeds * (kept + (1 - kept) / factor)
    angles = jnp.arange(start, start + rows.shape[-2], dtype=wide)[:, None] * speeds[None]
    cos, sin = (turn(angles)[None].astype(rows.dtype) for turn in (jnp.cos, jnp.sin))
    first, second, unturned = jnp.split(rows, (r // 2, r), axis=-1)
    return jnp.concatenate(
        [first * cos - second * sin, second * cos + first * sin, unturned], axis=-1
    )


def _mlp(rows: Array, params: Params, config: Config) -> Array:  # [T, D]
    act = _ACTIVATIONS[config.activation]
    inner = add_offset(rows @ params.mlp_in.T, params.mlp_in_bias)
    inner = act(inner) if params.mlp_gate is None else act(rows @ params.mlp_gate.T) * inner
    return add_offset(inner @ params.mlp_out.T, params.mlp_out_bias)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": jax.nn.silu,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": functools.partial(jax.nn.gelu, approximate=True),
}


def _project(weights: Array, bias: Array | None, rows: Array) -> Array:  # [H, T, k]
    projected = jnp.einsum("hkd,td->htk", weights, rows)
    return projected if bias is None else projected + bias[:, None]


def add_offset(rows: Array, offset: Array | None) -> Array:  # [..., D], [D]
    """Return every row plus the offset, if there is one."""
    return rows if offset is None else rows + jnp.broadcast_to(offset, rows.shape)
