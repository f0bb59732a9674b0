"""Decoders from the token ids to the logits, leaving the house's walk behind.

A prompt is token ids [T]; its stream [T, D] before the first layer is ``embed``. Prompts that begin
alike share the walk through their beginning: ``run`` leaves its keys and values as a ``Past``. What
a layer adds is written in ``layers``.
"""

import functools

import chex
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_indices
from lsa_lab.lm import layers
from lsa_lab.lm.config import Config
from lsa_lab.lm.layers import Layer, Past, at_least_single, norm, plus
from lsa_lab.lm.weights import Params, check_params, init
from lsa_lab.models.blocks import head_gates, layer_params
from lsa_lab.models.trace import Walk

__all__ = ["Config", "Params", "Past", "embed", "forward", "init", "logits", "run"]


def embed(params: Params, ids: Array, config: Config, start: int = 0) -> Array:  # [T] -> [T, D]
    """The stream before the first layer; ``start`` is the place of the first token."""
    chex.assert_rank(ids, 1, custom_message="ids are those of one prompt [T]; use jax.vmap")
    _check_places(start, ids.shape[0], config)
    stream = rows_of(params.embedding, ids)
    if config.scaled_embedding:
        stream = stream * jnp.sqrt(config.width).astype(stream.dtype)
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
    """``forward``, and what its tokens leave for prompts that go on from here, without ``past``."""
    check_inputs(params, stream, config, head_fill, past)
    return _run(stream, layers_of(params, config, head_mask, head_fill, past), config)


@functools.partial(jax.jit, static_argnames="config")
def _run(stream: Array, stack: Layer, config: Config) -> tuple[Walk, Past]:
    def step(stream: Array, layer: Layer) -> tuple[Array, tuple[Array, Array, Past]]:
        stream, heads, left = layers.step(stream, layer, config)
        return stream, (stream, heads, left)

    _, (later, heads, left) = jax.lax.scan(step, stream, stack)
    return Walk(jnp.concatenate([stream[None], later]), heads), left


def logits(
    params: Params, rows: Array, config: Config, words: Array | None = None
) -> Array:  # [..., D] -> [..., V]
    """U norm(h) + b of rows of the stream, those of any layer (the logit lens).

    Those of a model in half precision are summed, and left, in float32: near 24 bfloat16 knows
    eighths alone, and labels would tie.
    ``words`` [C]: the ids of the only words whose logits are wanted.
    """
    rows = norm(rows, params.final_norm_scale, params.final_norm_offset, config)
    unembedding, bias = unembedding_of(params), params.unembedding_bias
    if words is not None:
        unembedding = rows_of(unembedding, words)
        bias = None if bias is None else rows_of(bias, words)
    wide = at_least_single(rows.dtype)
    scores = jnp.einsum("...d,vd->...v", rows, unembedding, preferred_element_type=wide)
    return plus(scores, None if bias is None else bias.astype(wide))


def rows_of(table: Array, words: ArrayLike) -> Array:  # [V, ...], [...] -> [..., ...]
    """Return the rows of these words. One beyond the vocabulary is refused, or NaN where the ids
    are traced: jax would read the nearest row."""
    check_indices(words, len(table), "words")
    words = jnp.asarray(words)
    return table.at[words].get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)


def unembedding_of(params: Params) -> Array:  # [V, D]
    """The rows that words are scored by: the embedding's own where they are tied."""
    return params.embedding if params.unembedding is None else params.unembedding


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
    return Layer(layer_params(params), gates, fills, past)


def attention(params: Params, walk: Walk, config: Config, past: Past | None = None) -> Array:
    """The a_ti [L, H, T, P+T] with which token t reads token i, recomputed from the stream."""
    weights = functools.partial(layers.attention_weights, config=config)
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
