"""Edits of single layers of a decoder: parts clipped, or changed at random by as much."""

import functools
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import lm
from lsa_lab.analyses import clipping
from lsa_lab.lm import cached_stream, text
from lsa_lab.lm.decoder import Params, logits
from lsa_lab.models.matrices import matrices

Edit = tuple[int, str, float | str]  # layer, module, rate of clipping or "drop"


class Clipped:
    """A decoder and edits of its single layers; the factors of these layers stay in memory."""

    def __init__(self, decoder: lm.Decoder):
        self.decoder, self.pieces = decoder, {}

    def layer(self, edit: Edit) -> Params:
        """Return one layer's leaves with a module truncated, its heads joined."""
        layer, module, rate = edit
        params = jax.tree.map(
            lambda leaf: leaf[None], cached_stream.take_layer(self.decoder.params, layer)
        )
        if (layer, module) not in self.pieces:
            stacks = matrices(params, module)
            self.pieces[layer, module] = clipping.svd_terms(stacks)
        kept = clipping.kept_ranks(params, clipping.Edit(0, module, rate))
        clipped = clipping.rebuild(params, self.pieces[layer, module], kept)
        return jax.tree.map(lambda leaf: leaf[0], clipped)

    def disturbed(self, edit: Edit, seed: int) -> Params:
        """The layer's own leaves with a Gaussian matrix in the place of what the cut takes away,
        as large in the Frobenius norm: the null of clipping."""
        rng = np.random.default_rng(seed)

        def change(whole, cut):
            size = np.linalg.norm(np.asarray(whole - cut, float))
            if not size:
                return whole
            noise = rng.standard_normal(whole.shape, np.float32)
            return whole + jnp.asarray(size / np.linalg.norm(noise) * noise, whole.dtype)

        return jax.tree.map(
            change, cached_stream.take_layer(self.decoder.params, edit[0]), self.layer(edit)
        )


class Answers:
    """Questions after demonstrations, walked once to some layers, and then on with any edit there:
    what comes before an edited layer is never computed again."""

    def __init__(self, clipped: Clipped, questions: text.Questions, layers: Iterable[int]):
        self.clipped, self.questions, self.last = clipped, questions, max(layers)
        params, config = clipped.decoder.params, clipped.decoder.config
        prefix, self.kept = jnp.asarray(questions.prefix), []
        for bucket in questions.buckets:
            start = cached_stream.embed_questions(params, prefix, jnp.asarray(bucket.ids), config)
            self.kept.append(cached_stream.cache_until(params, start, config, layers))

    def scores(
        self, edit: Edit | None = None, *, at: int | None = None, seed: int | None = None
    ) -> np.ndarray:  # [B, C]
        """The logit of each label word after each question: of the decoder as it is, walked on from
        layer ``at``, the last one by default; or edited in one of the layers that were walked to,
        with a seed at random by as much."""
        layer, own = self.last if at is None else at, None
        if edit is not None:
            layer, clipped = edit[0], self.clipped
            own = clipped.layer(edit) if seed is None else clipped.disturbed(edit, seed)
        decoder, asks = self.clipped.decoder, self.questions
        scores = np.full((len(asks.labels), len(asks.label_ids)), np.nan)
        words = jnp.asarray(asks.label_ids)
        for bucket, halted in zip(asks.buckets, self.kept, strict=True):
            rows = cached_stream.resume(
                decoder.params, halted[layer], decoder.config, at=layer, edit=own
            )
            last = jnp.asarray(bucket.last)
            read = _read(decoder.params, rows, last, words, config=decoder.config)
            scores[bucket.rows] = np.asarray(read, float)[: len(bucket.rows)]
        return scores


@functools.partial(jax.jit, static_argnames="config")
def _read(params, rows, last, words, *, config):
    return logits(params, cached_stream.take_last_rows(rows, last), config, words)


def split_content_free(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # [B, C], [K, C]
    """Scores of the queries, and of the texts at their end that say nothing."""
    return scores[: -len(text.CONTENT_FREE)], scores[-len(text.CONTENT_FREE) :]
