"""Multiple choice: a decoder's log-probability of each answer to a question.

    log p(answer | prompt) = Σ_t log p(token t | prompt, the answer's tokens before t)

A question, a blank and an answer are one demonstration; a blank line parts two of them.
Demonstrations show their right answers and run once for all questions.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.lm import decoder, text
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import Params, Past
from lsa_lab.lm.records import Choices
from lsa_lab.lm.tokens import Tokenizer, check_tokenizer

_MOST_TOKENS = 4096  # that are run together


def choice_scores(
    params: Params,
    config: Config,
    demonstrations: Choices,
    queries: Choices,  # B of them, each with K answers
    tokenizer: Tokenizer,
) -> np.ndarray:  # [B, K]
    """Return the log-probability of each answer to each question, in nats."""
    check_tokenizer(tokenizer)
    rows = zip(demonstrations.texts, demonstrations.answers, demonstrations.labels, strict=True)
    shown = [(question, f" {answers[label].strip()}") for question, answers, label in rows]
    prefix, _, openings = text.encode(tokenizer, "\n\n", shown, queries.texts)
    answers = [
        [tokenizer.encode(f" {answer.strip()}", follows=True) for answer in answers]
        for answers in queries.answers
    ]
    # The last token before the answers predicts their first: it runs with every pair.
    head, prefix = prefix[-1:], prefix[:-1]
    parts = [
        [*head, *opening, *ids]
        for opening, row in zip(openings, answers, strict=True)
        for ids in row
    ]
    counts = np.array([len(ids) for row in answers for ids in row])
    if not counts.all() or not (np.array([len(part) for part in parts]) > counts).all():
        raise ValueError(f"{queries.name}: every question and every answer needs a token")
    text.check_lengths(prefix, parts, config.context, queries.name)
    past = decoder.run_prefix(params, np.array(prefix, np.int32), config)
    sums = np.full(len(parts), np.nan)
    for bucket in text.make_buckets(parts, config.context - len(prefix), _MOST_TOKENS):
        padded = np.resize(counts[bucket.rows], len(bucket.ids)).astype(np.int32)
        values = _sum_log_probabilities(params, past, bucket.ids, bucket.last, padded, config)
        sums[bucket.rows] = np.asarray(values, float)[: len(bucket.rows)]
    return sums.reshape(len(queries), -1)


@jax.jit
def _sum_log_probabilities(
    params: Params, past: Past, ids: Array, last: Array, counts: Array, config: Config
) -> Array:  # [W, T], [W], [W] -> [W]
    """Return Σ log p of the ``counts`` tokens up to ``last`` of each row."""

    def add(row: tuple[Array, Array, Array]) -> Array:
        ids, last, count = row
        stream = decoder.embed(params, ids, config, past.num_tokens)
        rows = decoder.last_stream(params, stream, config, past=past)
        logs = jax.nn.log_softmax(decoder.logits(params, rows[:-1], config))
        values = jnp.take_along_axis(logs, ids[1:, None], axis=1)[:, 0]
        place = jnp.arange(1, len(ids), dtype=last.dtype)
        return jnp.where((place > last - count) & (place <= last), values, 0).sum()

    return jax.lax.map(add, (ids, last, counts))
