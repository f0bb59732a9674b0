"""Questions to a decoder: sentences as token ids, and the score of each label.

A prompt of n demonstrations is

    start · opening(x₁) · answer(y₁) · separator opening(x₂) · answer(y₂) ... separator opening(x)

and the answer to it is the next token. The parts between the dots are encoded one by one, as they
are run: tokens at a joint could merge otherwise, and a demonstration or a query would then be
written with other tokens than its own. Everything before the query is shared by all queries.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import jax
import numpy as np
from jax import Array

from lsa_lab.arguments import check_indices
from lsa_lab.lm import decoder
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import Params, Past
from lsa_lab.lm.sentences import Sentences as Sentences
from lsa_lab.lm.sentences import Template as Template
from lsa_lab.lm.sentences import load_sentences as load_sentences
from lsa_lab.lm.tokens import Tokenizer
from lsa_lab.lm.weights import check_params

_PROGRAM = 512  # tokens of padding that are cheaper than a program more to compile
_STEP = 16  # lengths are rounded up to a multiple of it, and to a quarter of the power of two below


@dataclasses.dataclass(frozen=True, eq=False)
class Bucket:
    """r questions of about one length, which are run together, and W - r rows of padding."""

    ids: np.ndarray  # [W, T], padded on the right
    last: np.ndarray  # [W], the place of each question's last token
    rows: np.ndarray  # [r], which questions these are


@dataclasses.dataclass(frozen=True, eq=False)
class Questions:
    """B queries after the same demonstrations, as token ids."""

    prefix: np.ndarray  # [P], the demonstrations
    spans: np.ndarray  # [n, 2], where each of them begins and ends in the prefix
    buckets: tuple[Bucket, ...]
    labels: np.ndarray  # [B], the right class
    label_ids: np.ndarray  # [C], the first token of each class's word

    def prompts(self) -> Iterator[np.ndarray]:
        """Return the ids of each whole prompt, without padding, in the order of the queries."""
        rows = {
            row: bucket.ids[i, : bucket.last[i] + 1]
            for bucket in self.buckets
            for i, row in enumerate(bucket.rows.tolist())
        }
        return (np.concatenate([self.prefix, rows[row]]) for row in range(len(self.labels)))


def ask(
    template: Template,
    demonstrations: Sentences,  # n of them, in their order
    queries: Sentences,  # B of them
    tokenizer: Tokenizer,
    context: int,
    *,
    max_tokens: int = 4096,
) -> Questions:
    """Return the questions of these queries after these demonstrations.

    ``context`` is the most tokens of a prompt, as the model's Config has it. At most ``max_tokens``
    tokens are run together: fewer take less memory.
    """
    classes = demonstrations.classes, queries.classes
    if classes[0] != classes[1] or len(classes[0]) != len(template.labels):
        kinds = (", ".join(words) for words in (*classes, template.labels))
        raise ValueError(
            "demonstrations are of {}, queries of {}, and the template has the words {}: take both "
            "from the same sentences, and give each class a word".format(*kinds)
        )
    label_ids = template.find_label_ids(tokenizer)
    answers = [template.write_answer(int(label)) for label in demonstrations.labels]
    openings = [template.write_opening(text) for text in demonstrations.texts]
    asked = [template.write_opening(text) for text in queries.texts]
    shown = zip(openings, answers, strict=True)
    prefix, spans, parts = encode(tokenizer, template.separator, shown, asked)
    check_lengths(prefix, parts, context, queries.name)
    return Questions(
        np.array(prefix, np.int32),
        np.array(spans, int).reshape(-1, 2),
        make_buckets(parts, context - len(prefix), max_tokens),
        np.asarray(queries.labels),
        label_ids,
    )


def encode(
    tokenizer: Tokenizer,
    separator: str,
    shown: Iterable[tuple[str, str]],  # opening and answer of each demonstration
    asked: Sequence[str],  # the opening of each query
) -> tuple[list[int], list[tuple[int, int]], list[list[int]]]:
    """Return the ids of the demonstrations, the span of each of them, and the ids of each query."""
    prefix, spans = list(tokenizer.start), list[tuple[int, int]]()
    for opening, answer in shown:
        begin, follows = len(prefix), len(spans) > 0
        prefix += tokenizer.encode(separator * follows + opening, follows=follows)
        prefix += tokenizer.encode(answer, follows=True)
        spans.append((begin, len(prefix)))
    follows = len(spans) > 0
    parts = [tokenizer.encode(separator * follows + opening, follows=follows) for opening in asked]
    return prefix, spans, parts


def check_lengths(
    prefix: Sequence[int], parts: Sequence[Sequence[int]], context: int, name: str
) -> None:
    """Raise unless there are queries, each with a token, that fit into the context."""
    lengths = [len(part) for part in parts]
    if not min(lengths, default=0):
        raise ValueError(f"{name} has no query, or one of no token: add texts, or to the template")
    row, longest = int(np.argmax(lengths)), max(lengths)
    if len(prefix) + longest > context:
        raise ValueError(
            f"query {row} of {name} makes a prompt of {len(prefix) + longest} tokens, "
            f"{len(prefix)} of them those of the demonstrations, and the model's context is "
            f"{context}: take fewer demonstrations, or cut the texts"
        )


def scores(
    params: Params,
    config: Config,
    questions: Questions,
    head_mask: Array | None = None,  # [L, H]
) -> np.ndarray:  # [B, C]
    """Return the logit of each label's first token after each question.

    Keys and values of the demonstrations are computed once for all queries.
    """
    check_params(params, config)
    prefix, label_ids = questions.prefix, questions.label_ids
    for words in (prefix, label_ids, *(bucket.ids for bucket in questions.buckets)):
        check_indices(words, config.vocabulary, "words of the model's vocabulary")
    past = decoder.run_prefix(params, prefix, config, head_mask)
    values = np.full((len(questions.labels), len(label_ids)), np.nan)
    for bucket in questions.buckets:
        logits = _scores(params, past, bucket.ids, bucket.last, label_ids, head_mask, config)
        values[bucket.rows] = np.asarray(logits, float)[: len(bucket.rows)]
    return values


@jax.jit
def _scores(
    params: Params,
    past: Past,
    ids: Array,  # [W, T]
    last: Array,  # [W]
    label_ids: Array,  # [C]
    head_mask: Array | None,
    config: Config,
) -> Array:  # [W, C]

    def row(ids: Array, last: Array) -> Array:  # [T], [] -> [D]
        stream = decoder.embed(params, ids, config, past.num_tokens)
        return decoder.last_stream(params, stream, config, head_mask, past)[last]

    rows = jax.vmap(row)(ids, last)
    return decoder.logits(params, rows, config, label_ids)


def make_buckets(
    parts: Sequence[Sequence[int]], longest: int, max_tokens: int
) -> tuple[Bucket, ...]:
    """Sort queries by rounded length, at most ``longest``, in buckets of at most ``max_tokens``.

    Queries that the next length pads by little go with it; a bucket has one query at least.
    """
    lengths = np.array([min(_round_length(len(part)), longest) for part in parts])
    batches: list[Bucket] = []
    rows = np.array([], int)
    for length, following in itertools.pairwise([*np.unique(lengths).tolist(), math.inf]):
        rows = np.concatenate([rows, np.flatnonzero(lengths == length)])
        if len(rows) * (following - length) >= _PROGRAM:
            number = math.ceil(len(rows) / max(1, max_tokens // length))
            width = math.ceil(len(rows) / number)
            for begin in range(0, len(rows), width):
                chosen = rows[begin : begin + width]
                ids, last = np.zeros((width, int(length)), np.int32), np.zeros(width, np.int32)
                for i, row in enumerate(chosen):
                    ids[i, : len(parts[row])] = parts[row]
                    last[i] = len(parts[row]) - 1
                batches.append(Bucket(ids, last, chosen))
            rows = rows[:0]
    return tuple(batches)


def _round_length(length: int) -> int:
    step = max(_STEP, 2 ** (length.bit_length() - 3))
    return math.ceil(length / step) * step
