"""Scores of the label words, of a decoder as it is and of one with one layer edited.

What comes before an edited layer is walked once, and every edit of it goes on from there.
"""

import functools
from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab import lm
from lsa_lab.lm import halts, text
from lsa_lab.lm.decoder import Params, logits
from lsa_lab.lm.halts import Halt
from lsa_lab.lm.text import Questions, Sentences, Template

AT_ONCE = 4096  # tokens run together: every length of a bucket is a program of its own to compile


class Kept(NamedTuple):
    """Questions, each bucket of them halted before some layers."""

    questions: Questions
    buckets: list[dict[int, Halt]]


def questions(
    decoder: lm.Decoder, template: Template, demonstrations: Sentences, queries: Sentences
) -> Questions:
    """The queries after the demonstrations, as the decoder's tokenizer writes them."""
    return text.ask(
        template,
        demonstrations,
        queries,
        decoder.tokenizer,
        decoder.config.context,
        at_once=AT_ONCE,
    )


def keep(decoder: lm.Decoder, questions: Questions, layers: Iterable[int]) -> Kept:
    """The questions before each of these layers, walked once."""
    layers = sorted(set(layers))
    prefix = jnp.asarray(questions.prefix)
    kept = []
    for bucket in questions.buckets:
        start = halts.start(decoder.params, prefix, jnp.asarray(bucket.ids), decoder.config)
        kept.append(halts.keep(decoder.params, start, decoder.config, layers))
    return Kept(questions, kept)


def label_scores(
    decoder: lm.Decoder, kept: Kept, at: int, edit: Params | None = None
) -> np.ndarray:  # [B, C]
    """The logit of each label word after each question, ``edit`` in the place of layer ``at``.

    ``at`` is a layer that was kept; without an edit it is the decoder as it stands, from any.
    """
    asks = kept.questions
    scores = np.full((len(asks.labels), len(asks.label_ids)), np.nan)
    words = jnp.asarray(asks.label_ids)
    for bucket, halted in zip(asks.buckets, kept.buckets, strict=True):
        rows = halts.finish(decoder.params, halted[at], decoder.config, at=at, edit=edit)
        read = _read(decoder.params, rows, jnp.asarray(bucket.last), words, config=decoder.config)
        scores[bucket.rows] = np.asarray(read, float)[: len(bucket.rows)]
    return scores


@functools.partial(jax.jit, static_argnames="config")
def _read(params: Params, rows: Array, last: Array, words: Array, *, config) -> Array:
    return logits(params, halts.last_rows(rows, last), config, words)
