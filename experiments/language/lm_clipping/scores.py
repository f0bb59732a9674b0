"""Scores of the label words, of a decoder as it is and of one with one layer edited.

What comes before an edited layer is walked once, and every edit of it goes on from there.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.language import sentences
from lsa_lab import lm
from lsa_lab.analyses import clipping
from lsa_lab.lm import halts, text
from lsa_lab.lm.decoder import Params, logits
from lsa_lab.lm.text import CONTENT_FREE
from lsa_lab.store.cache import cache

Edit = tuple[int, str, float | str]  # layer, module, rate of clipping or "drop"


class Clipped:
    """A decoder and edits of its single layers; the factors of its matrices stay in the cache."""

    def __init__(self, decoder: lm.Decoder):
        self.decoder = decoder
        self.factors = clipping.Factors(cache() / "factors", decoder.params, ("attention", "mlp"))

    def layer(self, edit: Edit) -> Params:
        """The layer's own leaves, those of a module cut at a rate, the heads of each stacked."""
        layer, module, rate = edit
        edit = clipping.Edit((layer,), (module,), rate)
        keep = clipping.keep_masks(self.decoder.params, self.factors, edit)
        return clipping.rebuild_layer(self.decoder.params, self.factors, keep, layer)


class Answers:
    """Queries after demonstrations, walked once to some layers, and then on with any edit there."""

    def __init__(self, clipped: Clipped, task, demonstrations, queries, layers):
        self.clipped, self.decoder = clipped, clipped.decoder
        self.questions = text.ask(
            sentences.template(task),
            demonstrations,
            queries,
            self.decoder.tokenizer,
            self.decoder.config.context,
        )
        layers, prefix = sorted(set(layers)), jnp.asarray(self.questions.prefix)
        self.last, self.kept = layers[-1], []
        params, config = self.decoder.params, self.decoder.config
        for bucket in self.questions.buckets:
            start = halts.start(params, prefix, jnp.asarray(bucket.ids), config)
            self.kept.append(halts.keep(params, start, config, layers))

    def scores(self, edit: Edit | None = None) -> np.ndarray:  # [B, C]
        """The logit of each label word after each question, of the decoder as it is or edited in
        one of the layers that were walked to."""
        layer, own = (edit[0], self.clipped.layer(edit)) if edit else (self.last, None)
        params, config, asks = self.decoder.params, self.decoder.config, self.questions
        scores = np.full((len(asks.labels), len(asks.label_ids)), np.nan)
        words = jnp.asarray(asks.label_ids)
        for bucket, halted in zip(asks.buckets, self.kept, strict=True):
            rows = halts.finish(params, halted[layer], config, at=layer, edit=own)
            read = _read(params, rows, jnp.asarray(bucket.last), words, config=config)
            scores[bucket.rows] = np.asarray(read, float)[: len(bucket.rows)]
        return scores


def split_content_free(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # [B, C], [K, C]
    """Scores of the queries, and of the texts at their end that say nothing."""
    return scores[: -len(CONTENT_FREE)], scores[-len(CONTENT_FREE) :]


@functools.partial(jax.jit, static_argnames="config")
def _read(params: Params, rows: Array, last: Array, words: Array, *, config) -> Array:
    return logits(params, halts.last_rows(rows, last), config, words)
