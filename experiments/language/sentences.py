"""The sentences of a text task, what each run takes of them, and how they become prompts.

A prompt of one width is ``start · fill · demonstration ... demonstration · question``, so that one
program serves every prompt of a kind. The fill is the separator of the template, once at least: it
brings demonstrations of any length to one width, so that every question has the same place, and it
takes the first place of all, to which models attend whatever stands there (Xiao et al. 2309.17453).
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.language.language_config import TextTask
from lsa_lab.lm import text
from lsa_lab.lm.text import Bucket, Questions, Sentences, Template
from lsa_lab.lm.tokens import Tokenizer

_K1, _B = 1.5, 0.75  # how soon a repeated word saturates, and how far long texts are held back

# Of the invented texts: every word of theirs that the tiny tokenizer knows.
INVENTED_WORDS = ("dull", "bright", "slow", "warm", "film", "the", "a", "was", "end", "start")


class Sets(NamedTuple):
    """What one run takes of a text task: no sentence twice."""

    demonstrations: Sentences  # [n]
    fresh: Sentences  # [B], classes equally often
    others: Sentences  # as many as asked for besides: a pool, or sentences to fit on


def read(task: TextTask) -> Sentences:
    """All sentences of the task's classes, each cut to its first words."""
    whole = _invented() if task.source == "invented" else text.load_sentences(task.source)
    return whole.select_classes(*task.classes).truncate(task.most_words)


def template(task: TextTask) -> Template:
    """How the task's demonstrations are written."""
    return Template(tuple(task.words), task.form)


def sets(
    sentences: Sentences,
    task: TextTask,
    config,
    run: int,
    place: int,
    others: int = 0,
    *,
    shots: int | None = None,
    fresh: int | None = None,
) -> Sets:
    """The sentences of one run on the task at ``place`` of a config: the same ones every time.

    ``shots`` and ``fresh`` stand in the place of the config's.
    """
    first, second = np.random.SeedSequence([config.seed, place, run]).generate_state(2).tolist()
    shots = config.shots if shots is None else shots
    fresh = config.fresh if fresh is None else fresh
    if task.balanced:
        return Sets(*sentences.split(first, shots, fresh, others, balanced=True))
    demonstrations, rest = sentences.split(first, shots, len(sentences) - shots)
    return Sets(demonstrations, *rest.split(second, fresh, others, balanced=True))


def add_content_free(fresh: Sentences) -> Sentences:
    """The sentences, and after them the texts that say nothing."""
    labels = np.concatenate([fresh.labels, np.zeros(len(text.CONTENT_FREE), int)])
    return Sentences(fresh.name, fresh.texts + text.CONTENT_FREE, labels, fresh.classes)


def alternate(demonstrations: Sentences) -> Sentences:
    """The same in an order in which each pair has both of two classes, its own order kept: the
    first 2k of them have the classes equally often, if all have."""
    places = [np.flatnonzero(np.asarray(demonstrations.labels) == c) for c in (0, 1)]
    pairs = zip(*places, strict=True)
    return demonstrations.take([row for pair in pairs for row in sorted(pair)])


def _invented(size: int = 128, length: int = 6) -> Sentences:
    """Sentences of one length, so that few programs are compiled."""
    rng, labels = np.random.default_rng(0), np.arange(size) % 2
    texts = tuple(" ".join(rng.choice(INVENTED_WORDS, length)) for _ in range(size))
    return Sentences("invented sentences", texts, labels, ("negative", "positive"))


@dataclasses.dataclass(frozen=True, eq=False)
class Writer:
    """How sentences of at most ``width`` tokens, as they are written, become prompts."""

    tokenizer: Tokenizer
    template: Template
    width: int  # of the longest question, W

    @property
    def fill(self) -> int:
        """The token that fills a prompt up from the left."""
        return (self.tokenizer.encode(self.template.separator, follows=True) or [0])[0]

    @property
    def label_ids(self) -> np.ndarray:  # [C]
        return self.template.find_label_ids(self.tokenizer)

    def opening(self, text: str) -> list[int]:
        """A sentence as it is written after others, up to its label."""
        opening = self.template.separator + self.template.write_opening(text)
        return self.tokenizer.encode(opening, follows=True)

    def demonstrations(
        self, sentences: Sentences
    ) -> tuple[np.ndarray, np.ndarray]:  # [P], [n, 2]; P = start + 1 + n (W + 1)
        """The ids of demonstrations in their order, and where each begins and ends."""
        words = self.label_ids.tolist()
        parts = [
            [*self.opening(text), words[label]]
            for text, label in zip(sentences.texts, sentences.labels.tolist(), strict=True)
        ]
        start, own = list(self.tokenizer.start), sum(map(len, parts))
        length = len(start) + 1 + len(parts) * (self.width + 1)
        ids = (
            start + [self.fill] * (length - len(start) - own) + [i for part in parts for i in part]
        )
        ends = length - own + np.cumsum([0, *map(len, parts)])
        return np.array(ids, np.int32), np.stack([ends[:-1], ends[1:]], axis=1)

    def questions(self, sentences: Sentences) -> tuple[np.ndarray, np.ndarray]:  # [B, W], [B]
        """The ids of questions, padded on the right, and the place of each one's last token."""
        parts = [self.opening(text) for text in sentences.texts]
        ids = np.zeros((len(parts), self.width), np.int32)
        for row, part in zip(ids, parts, strict=True):
            row[: len(part)] = part
        return ids, np.array([len(part) - 1 for part in parts], np.int32)

    def ask(self, demonstrations: Sentences, queries: Sentences) -> Questions:
        """Questions of one width after demonstrations of one width."""
        prefix, spans = self.demonstrations(demonstrations)
        bucket = Bucket(*self.questions(queries), np.arange(len(queries)))
        return Questions(prefix, spans, (bucket,), queries.labels, self.label_ids)


def ask(decoder, task: TextTask, demonstrations: Sentences, queries: Sentences) -> Questions:
    """The questions that queries make after demonstrations, none of them cut or filled up."""
    sizes = decoder.tokenizer, decoder.config.context
    return text.ask(template(task), demonstrations, queries, *sizes)


def short(sentences: Sentences, tokenizer: Tokenizer, fewest: int, most: int) -> Sentences:
    """The sentences whose texts have so many tokens."""
    lengths = [len(tokenizer.encode(text)) for text in sentences.texts]
    return sentences.take([i for i, length in enumerate(lengths) if fewest <= length <= most])


def cut_to(sentences: Sentences, tokenizer: Tokenizer, template: Template, width: int) -> Sentences:
    """Sentences whose first words make a question of exactly ``width`` tokens; no others."""
    narrow = Writer(tokenizer, template, width)

    def beginning(text: str) -> str | None:
        words = text.split(" ")
        low, high = 0, len(words)  # the most words that are not too many: by halving
        while low < high:
            middle = (low + high + 1) // 2
            fits = len(narrow.opening(" ".join(words[:middle]))) <= width
            low, high = (middle, high) if fits else (low, middle - 1)
        start = " ".join(words[:low])
        return start if len(narrow.opening(start)) == width else None

    beginnings = [beginning(text) for text in sentences.texts]
    rows = [i for i, text in enumerate(beginnings) if text is not None]
    texts = tuple(text for text in beginnings if text is not None)
    return dataclasses.replace(sentences.take(rows), texts=texts)


def of_one_width(
    task: TextTask, tokenizer: Tokenizer, width: int, cut: bool = True
) -> tuple[Sentences, Writer]:
    """The task's sentences whose questions are cut to so many tokens, and their writer."""
    form, whole = template(task), read(task)
    pool = cut_to(whole, tokenizer, form, width) if cut else whole
    return pool, Writer(tokenizer, form, width)


def writer(tokenizer: Tokenizer, template: Template, sentences: Sentences) -> Writer:
    """The writer that is as wide as the longest of these sentences."""
    narrow = Writer(tokenizer, template, 0)
    widest = max(len(narrow.opening(text)) for text in sentences.texts)
    return dataclasses.replace(narrow, width=widest)


def bm25(texts: Sequence[str], queries: Sequence[str]) -> np.ndarray:  # [m, B]
    """The words that a text and a query share (Robertson and Zaragoza 2009),

    Σ_w log(1 + (m - m_w + ½) / (m_w + ½)) f (k + 1) / (f + k (1 - b + b |t| / mean |t|)),

    over the words w of a query; f counts w in the text t, m_w the texts that hold w. Words are
    parts between blanks, in small letters.
    """
    counts = [Counter(text.lower().split()) for text in texts]
    lengths = np.array([count.total() for count in counts])
    held = Counter(word for count in counts for word in count)
    damping = _K1 * (1 - _B + _B * lengths / lengths.mean())
    columns = np.zeros((len(texts), len(queries)))
    for column, query in zip(columns.T, queries, strict=True):
        for word in query.lower().split():
            f = np.array([count[word] for count in counts])
            rarity = np.log1p((len(texts) - held[word] + 0.5) / (held[word] + 0.5))
            column += rarity * f * (_K1 + 1) / (f + damping)
    return columns
