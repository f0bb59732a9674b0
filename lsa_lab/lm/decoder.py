"""Decoders from the token ids to the logits; ``forward`` returns a Walk, as every model here.

A prompt is token ids [T]; its stream [T, D] before the first layer is ``embed``. Prompts that begin
alike share the pass through their beginning: ``run`` returns its keys and values as a ``Past``.
The equations of a layer are in ``layers``.
"""

import chex
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_indices
from lsa_lab.lm import layers
from lsa_lab.lm.config import Config
from lsa_lab.lm.layers import Layer, Past, add_offset, norm, widen_dtype
from lsa_lab.lm.weights import Params, check_params, init
from lsa_lab.models.blocks import head_gates, layer_params
from lsa_lab.models.trace import Walk

__all__ = ["Config", "Params", "Past", "embed", "forward", "init", "logits", "run"]


def embed(params: Params, ids: Array, config: Config, start: int = 0) -> Array:  # [T] -> [T, D]
    """Return the stream before the first layer; ``start`` is the place of the first token."""
    chex.assert_rank(ids, 1, custom_message="ids are those of one prompt [T]; use jax.vmap")
    end = start + ids.shape[0]
    if end > config.context:
        raise ValueError(
            f"the prompt has {end} tokens, and the model's context is {config.context}: give fewer "
            "demonstrations, or shorter ones"
        )
    stream = look_up(params.embedding, ids)
    if config.scaled_embedding:
        stream = stream * jnp.sqrt(config.width).astype(stream.dtype)
    if params.positions is None:
        return stream
    return stream + params.positions[start:end]


def forward(
    params: Params,
    stream: Array,  # [T, D], from ``embed``
    config: Config,
    head_mask: Array | None = None,  # [L, H]
    past: Past | None = None,
) -> Walk:
    """Return the stream before the first layer and after each, and the writes of every head.

    MLPs and biases write to the stream only. ``head_mask`` holds gates g: a head writes g times its
    own. The last row of the stream is the one before the final norm, which is part of ``logits``.
    """
    return run(params, stream, config, head_mask, past)[0]


def run(
    params: Params,
    stream: Array,  # [T, D]
    config: Config,
    head_mask: Array | None = None,  # [L, H]
    past: Past | None = None,
) -> tuple[Walk, Past]:
    """Return ``forward``, and the keys and values of these tokens, without those of ``past``."""
    check_params(params, config)
    message = "stream is that of one prompt [T, D]"
    chex.assert_shape(stream, (None, config.width), custom_message=message)
    return _run(stream, stack_layers(params, config, head_mask, past), config)


@jax.jit
def _run(stream: Array, stack: Layer, config: Config) -> tuple[Walk, Past]:
    def step(stream: Array, layer: Layer) -> tuple[Array, tuple[Array, Array, Past]]:
        stream, heads, left = layers.step(stream, layer, config)
        return stream, (stream, heads, left)

    _, (later, heads, left) = jax.lax.scan(step, stream, stack)
    return Walk(jnp.concatenate([stream[None], later]), heads), left


@jax.jit
def run_prefix(params: Params, ids: Array, config: Config, head_mask: Array | None = None) -> Past:
    """Return the keys and values of the token ids before a prompt."""
    return run(params, embed(params, ids, config), config, head_mask)[1]


def last_stream(
    params: Params,
    stream: Array,  # [T, D]
    config: Config,
    head_mask: Array | None = None,
    past: Past | None = None,
) -> Array:  # [T, D]
    """Return the stream after the last layer alone.

    Its gradient keeps one stream a layer, and computes the rest again.
    """

    @jax.checkpoint
    def step(stream: Array, layer: Layer) -> tuple[Array, None]:
        return layers.step(stream, layer, config)[0], None

    return jax.lax.scan(step, stream, stack_layers(params, config, head_mask, past))[0]


def logits(
    params: Params, rows: Array, config: Config, words: Array | None = None
) -> Array:  # [..., D] -> [..., V]
    """Return U norm(h) + b of rows of the stream, those of any layer (the logit lens).

    Those of a model in half precision are summed, and left, in float32: near 24 bfloat16 has only
    eighths, and labels would tie. ``words`` [C]: the ids of the only words whose logits are wanted.
    """
    rows = norm(rows, params.final_norm_scale, params.final_norm_offset, config)
    unembedding, bias = params.unembedding, params.unembedding_bias
    unembedding = params.embedding if unembedding is None else unembedding
    if words is not None:
        unembedding = look_up(unembedding, words)
        bias = None if bias is None else look_up(bias, words)
    wide = widen_dtype(rows.dtype)
    scores = jnp.einsum("...d,vd->...v", rows, unembedding, preferred_element_type=wide)
    return add_offset(scores, None if bias is None else bias.astype(wide))


def look_up(table: Array, words: ArrayLike) -> Array:  # [V, ...], [...] -> [..., ...]
    """Return the rows of these words. One beyond the vocabulary is refused, or NaN where the ids
    are traced: jax would read the nearest row."""
    check_indices(words, len(table), "words")
    words = jnp.asarray(words)
    return table.at[words].get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)


def stack_layers(
    params: Params, config: Config, head_mask: Array | None = None, past: Past | None = None
) -> Layer:
    """Return all layers on their axis L, as ``jax.lax.scan`` takes them."""
    gates = None
    if head_mask is not None:
        gates = head_gates(head_mask, config.num_layers, config.num_heads, params.w_o.dtype)
    return Layer(layer_params(params), gates, past)
