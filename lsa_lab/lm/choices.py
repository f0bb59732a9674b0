"""Multiple choice: a decoder's log-probability of each answer to a question.

    log p(answer | prompt) = Σ_t log p(token t | prompt, the answer's tokens before t)

A question, a blank and an answer are one demonstration; a blank line parts two of them.
Demonstrations show their right answers and run once for all questions. Long answers are less
probable than short ones: ``per_token`` divides by the number of tokens.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.lm import decoder
from lsa_lab.lm.buckets import make_buckets
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
    *,
    per_token: bool = False,
) -> np.ndarray:  # [B, K]
    """Return the log-probability of each answer to each question, in nats."""
    check_tokenizer(tokenizer)

    def encode(text: str, follows: bool) -> list[int]:
        return tokenizer.encode("\n\n" * follows + text, follows=follows)

    prefix = list(tokenizer.start)
    for i, (text, answers) in enumerate(
        zip(demonstrations.texts, demonstrations.answers, strict=True)
    ):
        right = answers[int(demonstrations.labels[i])]
        prefix += encode(text, i > 0) + tokenizer.encode_word(right)
    openings = [encode(text, len(demonstrations) > 0) for text in queries.texts]
    pairs = [
        (opening, tokenizer.encode_word(answer))
        for opening, answers in zip(openings, queries.answers, strict=True)
        for answer in answers
    ]
    if not all(len(prefix) + len(opening) and answer for opening, answer in pairs):
        raise ValueError(f"{queries.name}: every question and every answer needs a token")
    return _score(params, config, prefix, pairs, per_token).reshape(len(queries), -1)


def _score(
    params: Params,
    config: Config,
    prefix: list[int],
    pairs: list[tuple[list[int], list[int]]],
    per_token: bool,
) -> np.ndarray:  # [B K]
    # The last token before the answers predicts their first: it runs with every pair.
    head, prefix = (prefix[-1:], prefix[:-1])
    parts = [[*head, *opening, *answer] for opening, answer in pairs]
    longest = max(map(len, parts))
    if len(prefix) + longest > config.context:
        raise ValueError(
            f"a prompt has {len(prefix) + longest} tokens, and the model's context is "
            f"{config.context}: take fewer demonstrations"
        )
    past = decoder.run_prefix(params, np.array(prefix, np.int32), config) if prefix else None
    counts, sums = np.array([len(answer) for _, answer in pairs]), np.full(len(pairs), np.nan)
    for bucket in make_buckets(parts, config.context - len(prefix), _MOST_TOKENS):
        padded = np.zeros(len(bucket.ids), np.int32)
        padded[: len(bucket.rows)] = counts[bucket.rows]
        values = _sum_log_probabilities(params, past, bucket.ids, bucket.last, padded, config)
        sums[bucket.rows] = np.asarray(values, float)[: len(bucket.rows)]
    return sums / counts if per_token else sums


@jax.jit
def _sum_log_probabilities(
    params: Params, past: Past | None, ids: Array, last: Array, counts: Array, config: Config
) -> Array:  # [W, T], [W], [W] -> [W]
    """Return Σ log p of the ``counts`` tokens up to ``last`` of each row."""
    start = 0 if past is None else past.num_tokens

    def add(row: tuple[Array, Array, Array]) -> Array:
        ids, last, count = row
        stream = decoder.embed(params, ids, config, start)
        rows = decoder.last_stream(params, stream, config, past=past)
        logs = jax.nn.log_softmax(decoder.logits(params, rows[:-1], config))
        values = jnp.take_along_axis(logs, ids[1:, None], axis=1)[:, 0]
        place = jnp.arange(1, len(ids), dtype=last.dtype)
        return jnp.where((place > last - count) & (place <= last), values, 0).sum()

    return jax.lax.map(add, (ids, last, counts))
