"""Questions to a decoder: sentences as token ids, and the score of each label.

A prompt of n demonstrations is

    start · opening(x₁) · answer(y₁) · separator opening(x₂) · answer(y₂) ... separator opening(x)

and the answer to it is the next token. The parts between the dots are encoded one by one, as they
are run: tokens at a joint could merge otherwise, and a demonstration or a query would then be
written with other tokens than its own. Everything before the query is shared by all queries.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import jax
import numpy as np
from jax import Array

from lsa_lab.arguments import check_indices
from lsa_lab.lm import decoder
from lsa_lab.lm.buckets import Bucket as Bucket
from lsa_lab.lm.buckets import make_buckets
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import Params, Past
from lsa_lab.lm.sentences import Sentences as Sentences
from lsa_lab.lm.sentences import load_sentences as load_sentences
from lsa_lab.lm.templates import Template as Template
from lsa_lab.lm.tokens import Tokenizer
from lsa_lab.lm.weights import check_params


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
    _check_classes(template, demonstrations, queries)
    label_ids = template.find_label_ids(tokenizer)
    prefix, spans = list(tokenizer.start), []
    for i, (text, label) in enumerate(
        zip(demonstrations.texts, demonstrations.labels, strict=True)
    ):
        begin = len(prefix)
        opening = template.separator * (i > 0) + template.write_opening(text)
        prefix += tokenizer.encode(opening, follows=i > 0)
        prefix += tokenizer.encode(template.write_answer(int(label)), follows=True)
        spans.append((begin, len(prefix)))
    follows = len(demonstrations) > 0
    openings = (
        template.separator * follows + template.write_opening(text) for text in queries.texts
    )
    parts = [tokenizer.encode(opening, follows=follows) for opening in openings]
    _check_lengths(parts, len(prefix), context, demonstrations, queries)
    return Questions(
        np.array(prefix, np.int32),
        np.array(spans, int).reshape(-1, 2),
        make_buckets(parts, context - len(prefix), max_tokens),
        np.asarray(queries.labels),
        label_ids,
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
    past = decoder.run_prefix(params, prefix, config, head_mask) if len(prefix) else None
    values = np.full((len(questions.labels), len(label_ids)), np.nan)
    for bucket in questions.buckets:
        logits = _scores(params, past, bucket.ids, bucket.last, label_ids, head_mask, config)
        values[bucket.rows] = np.asarray(logits, float)[: len(bucket.rows)]
    return values


@jax.jit
def _scores(
    params: Params,
    past: Past | None,
    ids: Array,  # [W, T]
    last: Array,  # [W]
    label_ids: Array,  # [C]
    head_mask: Array | None,
    config: Config,
) -> Array:  # [W, C]
    start = 0 if past is None else past.num_tokens

    def row(ids: Array, last: Array) -> Array:  # [T], [] -> [D]
        stream = decoder.embed(params, ids, config, start)
        return decoder.last_stream(params, stream, config, head_mask, past)[last]

    rows = jax.vmap(row)(ids, last)
    return decoder.logits(params, rows, config, label_ids)


def _check_classes(template: Template, demonstrations: Sentences, queries: Sentences) -> None:
    classes = demonstrations.classes, queries.classes
    if classes[0] != classes[1] or len(classes[0]) != len(template.labels):
        kinds = (", ".join(words) for words in (*classes, template.labels))
        raise ValueError(
            "demonstrations are of {}, queries of {}, and the template has the words {}: take both "
            "from the same sentences, and give each class a word".format(*kinds)
        )
    if not len(queries):
        raise ValueError(f"no query: {queries.name} is empty, and one sentence is the least")


def _check_lengths(
    parts: Sequence[Sequence[int]],
    before: int,
    context: int,
    demonstrations: Sentences,
    queries: Sentences,
) -> None:
    lengths = [len(part) for part in parts]
    row, longest = int(np.argmax(lengths)), max(lengths)
    if before + longest > context:
        raise ValueError(
            f"query {row} of {queries.name} makes a prompt of {before + longest} tokens, {before} "
            f"of them those of the {len(demonstrations)} demonstrations, and the model's context "
            f"is {context}: take fewer demonstrations, or cut the texts"
        )
    if not min(lengths):
        raise ValueError(
            f"query {int(np.argmin(lengths))} of {queries.name} has no token: add text to the "
            "template"
        )
