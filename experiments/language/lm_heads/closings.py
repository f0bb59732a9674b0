"""Answers of a decoder with heads closed, from what was kept before the layer that changes."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import lm
from lsa_lab.lm import cached_stream, decoder


class Closings:
    """Questions after one prefix, halted before some layers of a decoder with write biases."""

    def __init__(self, model: lm.Decoder, prefix, questions, last, label_ids, layers):
        self.params, self.config = model.params, model.config
        self.last, self.words = jnp.asarray(last), jnp.asarray(label_ids)
        start = cached_stream.embed_questions(
            self.params, jnp.asarray(prefix), jnp.asarray(questions), self.config
        )
        self.kept = cached_stream.cache_until(self.params, start, self.config, layers)

    def scores(self, at: int = 0, mask=None, fill=None) -> np.ndarray:  # [B, C]
        """The logits of the labels under a mask [L, H] that changes no layer before ``at``; the
        heads of that layer write ``fill`` [D] besides."""
        edit = None
        if fill is not None:
            edit = cached_stream.take_layer(self.params, at).replace(b_o=fill)
        rows = cached_stream.resume(
            self.params, self.kept[at], self.config, at=at, edit=edit, head_mask=mask
        )
        read = _read(
            self.params,
            cached_stream.take_last_rows(rows, self.last),
            self.words,
            config=self.config,
        )
        return np.asarray(read, float)


def add_write_biases(model: lm.Decoder) -> lm.Decoder:
    """The same decoder with a bias on what attention writes, 0, so that a layer's can be set."""
    params, config = model.params, model.config
    if config.write_biases:
        return model
    biases = jnp.zeros((config.num_layers, config.width), params.embedding.dtype)
    config = dataclasses.replace(config, write_biases=True)
    return model._replace(params=params.replace(b_o=biases), config=config)


def close_heads(config, *places: tuple[int, int]) -> jax.Array:  # [L, H]
    """All gates open but those of some heads."""
    mask = np.ones((config.num_layers, config.num_heads))
    for place in places:
        mask[place] = 0
    return jnp.asarray(mask)


@functools.partial(jax.jit, static_argnames="config")
def mean_writes(params, prefix, *, config):  # [P] -> [L, H, D]
    """What each head writes, averaged over the tokens of a prompt but the first."""
    walk = decoder.forward(params, decoder.embed(params, prefix, config), config)
    return walk.heads[:, :, 1:].mean(2)


@functools.partial(jax.jit, static_argnames="config")
def slopes(params, prefix, questions, last, labels, words, *, config):  # -> [B, L, H]
    """∂ℓ/∂gate of the label cross-entropy ℓ of each question, at open gates."""

    def loss(mask, ids, place, label):
        stream = decoder.embed(params, jnp.concatenate([prefix, ids]), config)
        row = decoder.forward(params, stream, config, mask).stream[-1, len(prefix) + place]
        return -jax.nn.log_softmax(decoder.logits(params, row, config, words))[label]

    ones = jnp.ones((config.num_layers, config.num_heads), params.embedding.dtype)
    return jax.lax.map(lambda row: jax.grad(loss)(ones, *row), (questions, last, labels))


@functools.partial(jax.jit, static_argnames="config")
def _read(params, rows, words, *, config):
    return decoder.logits(params, rows, config, words)
