"""Edits of one layer, evaluated from a stream cached before it: no layer below it runs again.

Prompts that share a prefix are a ``CachedStream``: the rows of the prefix and of the questions
before one layer. Layers go on from it together, each reading the prefix by its keys and values:

    start = embed_questions(params, prefix, questions, config)
    cached = cache_until(params, start, config, layers=(0, 20))
    rows = resume(params, cached[20], config, at=20, edit=clipped_layer)     # [B, T, D]
    scores = logits(params, rows[jnp.arange(len(rows)), last], config)       # [B, V]

An edited layer is the Params of the layer without the axis L (``take_layer``, changed by
``clipping.clip`` say). One program serves every layer and every edit, and its bits are those of a
run from layer 0 of the edited model.
"""

from collections.abc import Iterable

import chex
import flax.struct
import jax
from jax import Array

from lsa_lab.arguments import check_indices
from lsa_lab.lm import layers
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import embed, stack_layers
from lsa_lab.lm.weights import Params, check_params
from lsa_lab.models.blocks import layer_params


class CachedStream(flax.struct.PyTreeNode):
    """The rows before one layer of B questions, each after the same prefix of P tokens."""

    prefix: Array  # [P, D]
    questions: Array  # [B, T, D]


def embed_questions(
    params: Params, prefix: Array, questions: Array, config: Config
) -> CachedStream:
    """Return the stream before layer 0 of token ids: prefix [P], questions [B, T], padded on the
    right."""
    chex.assert_rank([prefix, questions], [1, 2], custom_message="prefix is [P], questions [B, T]")
    check_indices(questions, len(params.embedding), "words")
    after = jax.vmap(lambda ids: embed(params, ids, config, len(prefix)))
    return CachedStream(embed(params, prefix, config), after(questions))


def cache_until(
    params: Params, stream: CachedStream, config: Config, layers: Iterable[int]
) -> dict[int, CachedStream]:
    """Return the stream before each of some layers, from the one before layer 0."""
    check_params(params, config)
    cached, at = {}, 0
    for layer in sorted(set(layers)):
        check_indices(layer, config.num_layers, "layers")
        stream = _run(params, stream, at, layer, 0, take_layer(params, 0), None, config)
        cached[layer], at = stream, layer
    return cached


def resume(
    params: Params,
    stream: CachedStream,
    config: Config,
    at: int = 0,
    edit: Params | None = None,  # leaves without the axis L
    head_mask: Array | None = None,  # [L, H]
) -> Array:  # [B, T, D]
    """Return the questions' rows after the last layer, from the stream before layer ``at``.

    ``edit`` takes the place of layer ``at``.
    """
    layer = take_layer(params, at)
    message = "an edit is one layer's Params without the axis L: take_layer"
    edit = layer if edit is None else edit
    chex.assert_trees_all_equal_shapes_and_dtypes(edit, layer, custom_message=message)
    stop = config.num_layers
    return _run(params, stream, at, stop, at, edit, head_mask, config).questions


def take_layer(params: Params, layer: int) -> Params:
    """Return the leaves of one layer, without the axis L; those outside layers are None."""
    stacked = layer_params(params)
    check_indices(layer, len(stacked.w_q), "layers")
    return jax.tree.map(lambda leaf: leaf[layer], stacked)


@jax.jit
def _run(
    params: Params,
    stream: CachedStream,
    at: int,
    stop: int,
    edited: int,
    edit: Params,
    head_mask: Array | None,
    config: Config,
) -> CachedStream:
    """Return the stream before layer ``stop`` from the one before ``at``: one loop, one program.

    The edit is chosen inside the loop, not run after it: so its bits are the loop's.
    """
    stack = stack_layers(params, config, head_mask)

    def step(number: Array, stream: CachedStream) -> CachedStream:
        layer = jax.tree.map(lambda leaf: leaf[number], stack)
        weights = jax.lax.cond(number == edited, lambda: edit, lambda: layer.params)
        layer = layer._replace(params=weights)
        prefix, layer = layers.step_prefix(stream.prefix, layer, config)
        questions = jax.vmap(lambda rows: layers.step(rows, layer, config)[0])(stream.questions)
        return CachedStream(prefix, questions)

    return jax.lax.fori_loop(at, stop, step, stream)
