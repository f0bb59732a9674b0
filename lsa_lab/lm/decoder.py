"""Decoders from the token ids to the logits, leaving the house's walk behind.

With u = norm(h), keys and values of head h's group g, and R_t the rotation of place t, a layer adds
to token t of the stream

    Σ_h W_O^h Σ_{i≤t} a_ti (W_V^g u_i + b_v),   a_ti = softmax_i (R_i (W_K^g u_i + b_k)) · (R_t (W_Q^h u_t + b_q))

and W_out φ(u') + b_out of the stream that attention has left (Vaswani et al. 1706.03762; rotary
places: Su et al. 2104.09864), or of the one that attention has read where the config says
``parallel``. u' = norm(h) has a scale of its own, and φ(u) = act(W_gate u) ⊙ W_in u where there is
a gate (Shazeer 2002.05202), act(W_in u + b_in) where there is none.

A prompt is token ids [T]; its stream [T, D] before the first layer is ``embed``. Prompts that begin
alike share the walk through their beginning: ``run`` leaves its keys and values as a ``Past``.
"""

import functools
from typing import NamedTuple

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.lm.config import Config
from lsa_lab.lm.weights import Params, check_params, init, of_layers
from lsa_lab.models.blocks import head_gates
from lsa_lab.models.trace import Walk

__all__ = ["Config", "Params", "Past", "embed", "forward", "init", "logits", "run"]


class Past(flax.struct.PyTreeNode):
    """What tokens before a prompt have left for it to read; their keys are turned already."""

    keys: Array  # [L, G, P, k]
    values: Array  # [L, G, P, k]

    @property
    def num_tokens(self) -> int:
        """P, the place of the first token after them."""
        return self.keys.shape[-2]


class Layer(NamedTuple):
    """What one layer runs on: leaves without the axis L."""

    params: Params
    gate: Array | None = None  # [H]
    fill: Array | None = None  # [H, T, D]
    past: Past | None = None  # keys and values [G, P, k]


def embed(params: Params, ids: Array, config: Config, start: int = 0) -> Array:  # [T] -> [T, D]
    """The stream before the first layer; ``start`` is the place of the first token."""
    chex.assert_rank(ids, 1, custom_message="ids are those of one prompt [T]; use jax.vmap")
    _check_places(start, ids.shape[0], config)
    stream = params.embedding[ids]
    if params.positions is None:
        return stream
    return stream + params.positions[start : start + ids.shape[0]]


def forward(
    params: Params,
    stream: Array,  # [T, D], from ``embed``
    config: Config,
    head_mask: Array | None = None,  # [L, H]
    head_fill: Array | None = None,  # [L, H, T, D]
    past: Past | None = None,
) -> Walk:
    """The stream before the first layer and after each, and what every head wrote.

    MLPs and biases write to the stream only. ``head_mask`` holds gates g: a head writes g times
    its own, and (1 - g) times ``head_fill``, by default 0. The last row of the stream is the one
    before the final norm, which is part of ``logits``.
    """
    return run(params, stream, config, head_mask, head_fill, past)[0]


def run(
    params: Params,
    stream: Array,  # [T, D]
    config: Config,
    head_mask: Array | None = None,  # [L, H]
    head_fill: Array | None = None,  # [L, H, T, D]
    past: Past | None = None,
) -> tuple[Walk, Past]:
    """``forward``, and what it leaves for prompts that go on from here (without ``past`` itself)."""
    check_inputs(params, stream, config, head_fill, past)
    layers = layers_of(params, config, head_mask, head_fill, past)

    def step(stream: Array, layer: Layer) -> tuple[Array, tuple[Array, Array, Past]]:
        stream, heads, left = layer_step(stream, layer, config)
        return stream, (stream, heads, left)

    _, (later, heads, left) = jax.lax.scan(step, stream, layers)
    return Walk(jnp.concatenate([stream[None], later]), heads), left


def logits(params: Params, rows: Array, config: Config) -> Array:  # [..., D] -> [..., V]
    """U norm(h) + b of rows of the stream, those of any layer (the logit lens)."""
    rows = norm(rows, params.final_norm_scale, params.final_norm_offset, config)
    unembedding = params.embedding if params.unembedding is None else params.unembedding
    scores = rows @ unembedding.T
    return scores if params.unembedding_bias is None else scores + params.unembedding_bias


def layers_of(
    params: Params,
    config: Config,
    head_mask: Array | None = None,
    head_fill: Array | None = None,
    past: Past | None = None,
) -> Layer:
    """All layers on their axis L, as ``jax.lax.scan`` takes them."""
    gates = fills = None
    if head_mask is not None:
        gates = head_gates(head_mask, config.num_layers, config.num_heads, params.w_o.dtype)
        if head_fill is not None:
            fills = (1 - gates)[..., None, None] * head_fill
    return Layer(of_layers(params), gates, fills, past)


def layer_step(
    stream: Array, layer: Layer, config: Config
) -> tuple[Array, Array, Past]:  # [T, D], [H, T, D], [G, T, k] x 2
    """The stream after one layer, the heads' writes, and the keys and values of its tokens."""
    params = layer.params
    rows = norm(stream, params.attention_norm_scale, params.attention_norm_offset, config)
    read, left = _attend(rows, layer, config)  # [T, H, k]
    if layer.gate is not None:
        read = read * layer.gate[:, None]
    heads = jnp.einsum("hdk,thk->htd", params.w_o, read)
    after = stream + jnp.einsum("hdk,thk->td", params.w_o, read)
    if layer.fill is not None:
        heads, after = heads + layer.fill, after + layer.fill.sum(0)
    if params.b_o is not None:
        after = after + params.b_o
    source = stream if config.parallel else after
    rows = norm(source, params.mlp_norm_scale, params.mlp_norm_offset, config)
    return after + _mlp(rows, params, config), heads, left


def norm(rows: Array, scale: Array, offset: Array | None, config: Config) -> Array:  # [..., D]
    """u ⊙ scale / √(mean u² + ε) + offset, of the centred u where the norm is a layer norm."""
    wide = rows.astype(jnp.promote_types(rows.dtype, jnp.float32))  # half precision overflows
    if config.norm == "layer":
        wide = wide - wide.mean(-1, keepdims=True)
    unit = wide * jax.lax.rsqrt((wide**2).mean(-1, keepdims=True) + config.norm_epsilon)
    scaled = unit.astype(rows.dtype) * scale
    return scaled if offset is None else scaled + offset


def attention(params: Params, walk: Walk, config: Config, past: Past | None = None) -> Array:
    """The a_ti [L, H, T, P+T] with which token t reads token i, recomputed from the stream."""

    def weights(stream: Array, layer: Layer) -> Array:  # [H, T, P+T]
        leaves = layer.params
        rows = norm(stream, leaves.attention_norm_scale, leaves.attention_norm_offset, config)
        queries, keys, _ = _projected(rows, layer, config)
        scores = _weights(queries, keys, layer.past, rows.dtype)
        return jnp.concatenate(scores, axis=-1).reshape(config.num_heads, rows.shape[0], -1)

    return jax.vmap(weights)(walk.stream[:-1], layers_of(params, config, past=past))


def check_inputs(
    params: Params, stream: Array, config: Config, head_fill: Array | None, past: Past | None
) -> None:
    """Raise unless the arrays that ``forward`` is given fit together."""
    check_params(params, config)
    chex.assert_shape(
        stream, (None, config.width), custom_message="stream is that of one prompt [T, D]"
    )
    start = 0 if past is None else past.num_tokens
    _check_places(start, stream.shape[0], config)
    if head_fill is not None:
        writes = (config.num_layers, config.num_heads, *stream.shape)
        chex.assert_shape(head_fill, writes, custom_message="one write per head and token")


def _check_places(start: int, num_tokens: int, config: Config) -> None:
    if start + num_tokens > config.context:
        raise ValueError(
            f"the prompt has {start + num_tokens} tokens, and the model's context is "
            f"{config.context}: give fewer demonstrations, or shorter ones"
        )


def _attend(rows: Array, layer: Layer, config: Config) -> tuple[Array, Past]:  # [T, H, k]
    """Σ_i a_ti v_i for every head; the past is read beside the prompt, never copied to it."""
    queries, keys, values = _projected(rows, layer, config)
    past = layer.past
    before, own = _weights(queries, keys, past, rows.dtype)
    read = jnp.einsum("grti,gik->tgrk", own, values)
    if past is not None:
        read = read + jnp.einsum("grti,gik->tgrk", before, past.values)
    read = read.reshape(rows.shape[0], config.num_heads, config.key_width)
    return read, Past(keys, values)


def _projected(
    rows: Array, layer: Layer, config: Config
) -> tuple[Array, Array, Array]:  # [G, H/G, T, k], [G, T, k] x 2
    """Queries, keys and values, the first two turned by their places."""
    params = layer.params
    start = 0 if layer.past is None else layer.past.num_tokens
    turn = functools.partial(_turned, start=start, config=config)
    queries = _project(params.w_q, params.b_q, rows)
    keys = _project(params.w_k, params.b_k, rows)
    values = _project(params.w_v, params.b_v, rows)
    grouped = turn(queries).reshape(config.num_groups, -1, *queries.shape[1:])
    return grouped, turn(keys), values


def _weights(
    queries: Array, keys: Array, past: Past | None, dtype: jnp.dtype
) -> tuple[Array, Array]:  # [G, H/G, T, P], [G, H/G, T, T]
    """The softmax over the past and over the tokens up to t, in two parts."""
    wide = jnp.promote_types(dtype, jnp.float32)
    num_tokens = keys.shape[1]
    own = jnp.einsum("grtk,gik->grti", queries, keys).astype(wide)
    own = jnp.where(jnp.tril(jnp.ones((num_tokens, num_tokens), bool)), own, -jnp.inf)
    peak = own.max(-1, keepdims=True)
    before = own[..., :0]
    if past is not None:
        before = jnp.einsum("grtk,gik->grti", queries, past.keys).astype(wide)
        peak = jnp.maximum(peak, before.max(-1, keepdims=True))
    peak = jax.lax.stop_gradient(peak)
    before, own = jnp.exp(before - peak), jnp.exp(own - peak)
    total = before.sum(-1, keepdims=True) + own.sum(-1, keepdims=True)
    return (before / total).astype(dtype), (own / total).astype(dtype)


def _turned(rows: Array, start: int, config: Config) -> Array:  # [H, T, k]
    """The first r coordinates of every row, turned in pairs by angles t / base^(2i/r)."""
    r = config.rotary_width
    if r is None:
        return rows
    wide = jnp.promote_types(rows.dtype, jnp.float32)
    speeds = config.rotary_base ** (-jnp.arange(0, r, 2, dtype=wide) / r)
    angles = jnp.arange(start, start + rows.shape[-2], dtype=wide)[:, None] * speeds[None]
    cos, sin = jnp.cos(angles).astype(rows.dtype), jnp.sin(angles).astype(rows.dtype)
    first, second, rest = jnp.split(rows, (r // 2, r), axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin, rest], axis=-1)


def _mlp(rows: Array, params: Params, config: Config) -> Array:  # [T, D]
    act = _ACTIVATIONS[config.activation]
    inner = rows @ params.mlp_in.T
    if params.mlp_in_bias is not None:
        inner = inner + params.mlp_in_bias
    inner = act(inner) if params.mlp_gate is None else act(rows @ params.mlp_gate.T) * inner
    written = inner @ params.mlp_out.T
    return written if params.mlp_out_bias is None else written + params.mlp_out_bias


_ACTIVATIONS = {
    "silu": jax.nn.silu,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": functools.partial(jax.nn.gelu, approximate=True),
}


def _project(weights: Array, bias: Array | None, rows: Array) -> Array:  # [H, T, k]
    projected = jnp.einsum("hkd,td->htk", weights, rows)
    return projected if bias is None else projected + bias[:, None]
