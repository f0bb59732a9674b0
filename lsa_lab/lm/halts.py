"""An edit of one layer, judged from a stream kept before it: no layer below it runs again.

Prompts that share a prefix are a ``Halt``: the prefix's rows and the questions' before one layer.
Layers go on from it together, each reading the prefix through its keys and values:

    kept = keep(params, start(params, prefix, questions, config), config, layers=(0, 20, 29))
    rows = finish(params, kept[20], config, at=20, edit=clipped_layer)      # [B, T, D]
    scores = logits(params, last_rows(rows, last), config)                  # [B, V]

An edited layer is the layer's own Params without the axis L (``layer_of``, changed by
``clipping.clip`` say). One program serves every layer and every edit, and
its bits are those of a whole run from layer 0 of the edited model.
"""

import functools
from collections.abc import Iterable

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import check_indices, check_whole
from lsa_lab.lm import layers
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import embed, layers_of
from lsa_lab.lm.layers import Layer
from lsa_lab.lm.weights import Params, check_params
from lsa_lab.models.blocks import OUTSIDE_LAYERS, layer_params


class Halt(flax.struct.PyTreeNode):
    """The rows before one layer of B questions, each after the same prefix of P tokens."""

    prefix: Array  # [P, D]
    questions: Array  # [B, T, D]


def start(params: Params, prefix: Array, questions: Array, config: Config) -> Halt:
    """The halt before layer 0 of token ids: prefix [P], questions [B, T], padded on the right."""
    chex.assert_rank([prefix, questions], [1, 2], custom_message="prefix is [P], questions [B, T]")
    check_indices(questions, len(params.embedding), "words")
    after = functools.partial(embed, params, config=config, start=prefix.shape[0])
    return Halt(embed(params, prefix, config), jax.vmap(lambda ids: after(ids))(questions))


def keep(params: Params, halt: Halt, config: Config, layers: Iterable[int]) -> dict[int, Halt]:
    """The halt before each of some layers, from the one before layer 0."""
    kept, at = {}, 0
    for layer in sorted(set(layers)):
        _check_layer(layer, config)
        halt = advance(params, halt, config, at, layer)
        kept[layer], at = halt, layer
    return kept


def finish(
    params: Params,
    halt: Halt,
    config: Config,
    at: int = 0,
    edit: Params | None = None,  # leaves without the axis L
    head_mask: Array | None = None,  # [L, H]
) -> Array:  # [B, T, D]
    """The questions' rows after the last layer, from the halt before layer ``at``.

    ``edit`` stands in the place of layer ``at``.
    """
    _check_layer(at, config)
    whole = layer_of(params, at) if edit is None else edit
    check_edit(params, whole)
    return _walk(params, halt, at, config.num_layers, at, whole, head_mask, config=config).questions


def advance(params: Params, halt: Halt, config: Config, at: int, stop: int) -> Halt:
    """The halt before layer ``stop``, from the one before layer ``at``."""
    check_params(params, config)
    return _walk(params, halt, at, stop, 0, layer_of(params, 0), None, config=config)


def last_rows(rows: Array, last: Array) -> Array:  # [B, T, D], [B] -> [B, D]
    """The row of the last token of each question."""
    return jnp.take_along_axis(rows, last[:, None, None], axis=1)[:, 0]


def layer_of(params: Params, layer: int) -> Params:
    """One layer's own leaves, without the axis L; those that no layer owns are None."""
    own = layer_params(params)
    check_indices(layer, len(own.w_q), "layers")
    return jax.tree.map(lambda leaf: leaf[layer], own)


def with_layer(params: Params, layer: int, edit: Params) -> Params:
    """The whole decoder with one of its layers replaced."""
    check_edit(params, edit)
    own = layer_params(params)
    edited = jax.tree.map(lambda leaf, new: leaf.at[layer].set(new), own, edit)
    outside = {name: leaf for name, leaf in vars(params).items() if name in OUTSIDE_LAYERS}
    return edited.replace(**outside)


def check_edit(params: Params, edit: Params) -> None:
    """Raise unless ``edit`` has the leaves of one layer of ``params``, in their shapes."""
    layer = jax.eval_shape(lambda p: layer_of(p, 0), params)
    chex.assert_trees_all_equal_shapes_and_dtypes(
        edit, layer, custom_message="an edit is one layer's Params without the axis L: layer_of"
    )


@functools.partial(jax.jit, static_argnames="config")
def _walk(
    params: Params,
    halt: Halt,
    at: int,
    stop: int,
    edited: int,
    edit: Params,
    head_mask: Array | None,
    *,
    config: Config,
) -> Halt:
    """The halt before layer ``stop`` from the one before ``at``: one loop, one program.

    The edit is chosen inside the loop, not run beside it: so its bits are the loop's.
    """
    stack = layers_of(params, config, head_mask)

    def step(number: Array, halt: Halt) -> Halt:
        layer = jax.tree.map(
            lambda leaf: jax.lax.dynamic_index_in_dim(leaf, number, keepdims=False), stack
        )
        own = jax.lax.cond(number == edited, lambda: edit, lambda: layer.params)
        layer = layer._replace(params=own)
        prefix, past = halt.prefix, None
        if prefix.shape[0]:
            prefix, _, past = layers.step(prefix, layer, config)
        after = Layer(own, layer.gate, past=past)
        questions = jax.vmap(lambda stream: layers.step(stream, after, config)[0])(halt.questions)
        return Halt(prefix, questions)

    return jax.lax.fori_loop(at, stop, step, halt)


def _check_layer(layer: int, config: Config) -> None:
    if not 0 <= check_whole(layer, "layer") < config.num_layers:
        raise ValueError(f"layer {layer}: this model has layers 0 to {config.num_layers - 1}")
