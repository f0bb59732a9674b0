"""What a decoder makes of prompts of one width: scores of labels, rows, and flows to prefixes.

Prefixes [m, P] and questions [B, W] come as arrays: one program serves all runs.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab import lm
from lsa_lab.lm import decoder, flow

TOGETHER = 4  # prefixes that are run side by side


class Alone(NamedTuple):
    """Sentences as questions by themselves."""

    scores: Array  # [N, C]  the logits of the label words
    rows: Array  # [N, D]  the mean of their rows after a layer


def ask(program: Callable, model: lm.Decoder, *arrays, **static) -> Any:
    """The numbers of one of the programs below, for a decoder, in float64."""
    values = program(model.params, *arrays, config=model.config, **static)
    return jax.tree.map(lambda value: np.asarray(value, float), values)


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:  # [m, D], [B, D] -> [m, B]
    """Cosines of rows, less the mean of the left ones: all rows of a model point one way."""
    units = [rows - left.mean(0) for rows in (left, right)]
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in units]
    return units[0] @ units[1].T


@functools.partial(jax.jit, static_argnames="config")
def scores(params, prefixes, questions, last, label_ids, *, config):  # -> [m, B, C]
    """The logits of the label words after every question, each after every prefix."""

    def read_prefix(prefix):  # [P] -> [B, C]
        return jax.vmap(_scorer(params, prefix, label_ids, config))(questions, last)

    return jax.lax.map(read_prefix, prefixes, batch_size=TOGETHER)


@functools.partial(jax.jit, static_argnames="config")
def paired_scores(params, prefixes, questions, last, label_ids, *, config):  # -> [B, C]
    """The same of every question after a prefix of its own, [B, P]."""

    def score(row):  # -> [C]
        prefix, ids, place = row
        return _scorer(params, prefix, label_ids, config)(ids, place)

    return jax.lax.map(score, (prefixes, questions, last), batch_size=TOGETHER)


def _scorer(params, prefix, label_ids, config):
    """Scores [C] of a question [W] whose last token has the place given, after the prefix."""
    _, past = decoder.run(params, decoder.embed(params, prefix, config), config)

    def score(ids, place):
        stream = decoder.embed(params, ids, config, start=len(prefix))
        row = decoder.forward(params, stream, config, past=past).stream[-1, place]
        return decoder.logits(params, row, config, label_ids)

    return score


@functools.partial(jax.jit, static_argnames=("config", "layer"))
def alone(params, prefix, questions, last, label_ids, *, config, layer) -> Alone:
    """Questions [N, W], each after the same prefix [P]; rows after a layer."""

    def each(row) -> Alone:
        ids, place = row
        stream = decoder.embed(params, jnp.concatenate([prefix, ids]), config)
        rows = decoder.forward(params, stream, config).stream[:, len(prefix) :]
        own = (jnp.arange(len(ids), dtype=place.dtype) <= place).astype(stream.dtype)
        scores = decoder.logits(params, rows[-1, place], config, label_ids)
        return Alone(scores, own @ rows[layer] / own.sum())

    return jax.lax.map(each, (questions, last), batch_size=TOGETHER)


@functools.partial(jax.jit, static_argnames=("config", "layers"))
def flows(params, prefixes, questions, last, read, *, config, layers):  # [m, B, len(layers), K, P]
    """|∂ read_k(h_l) / ∂ e_i|² of a prefix's tokens i, with h_l the row of a question's last token;
    ``read`` gives K numbers."""

    def read_prefix(prefix):  # [P] -> [B, len(layers), K, P]
        begin = decoder.embed(params, prefix, config)

        def squares(ids, place):  # [len(layers), K, P]
            stream = decoder.embed(params, ids, config, start=len(prefix))
            rows = flow.prefix_flow(params, begin, stream, config, read, layers=layers, place=place)
            return (rows**2).sum(-1)

        return jax.vmap(squares)(questions, last)

    return jax.lax.map(read_prefix, prefixes, batch_size=TOGETHER)
