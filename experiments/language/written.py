"""Short sentences as token ids of one width, so that one program serves every prompt of a kind.

A prompt is ``start · fill · demonstration ... demonstration · question``. The fill is the separator
of the template, once at least: it brings demonstrations of any length to one width, so that every
question has the same place, and it takes the first place of all, to which models attend whatever
stands there (Xiao et al. 2309.17453).
"""

import dataclasses

import numpy as np

from lsa_lab.lm.text import Sentences, Template
from lsa_lab.lm.tokens import Tokenizer


@dataclasses.dataclass(frozen=True, eq=False)
class Writer:
    """How sentences of at most ``width`` tokens, as they are written, become prompts."""

    tokenizer: Tokenizer
    template: Template
    width: int  # of the longest question, W

    @property
    def fill(self) -> int:
        """The token that fills a prompt up from the left."""
        return (self.tokenizer.encode(self.template.separator) or [0])[0]

    @property
    def label_ids(self) -> np.ndarray:  # [C]
        return self.template.label_ids(self.tokenizer)

    def opening(self, text: str) -> list[int]:
        """A sentence as it is written after others, up to its label."""
        return self.tokenizer.encode(self.template.separator + self.template.opening(text))

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


def writer(tokenizer: Tokenizer, template: Template, sentences: Sentences) -> Writer:
    """The writer that is as wide as the longest of these sentences."""
    narrow = Writer(tokenizer, template, 0)
    widest = max(len(narrow.opening(text)) for text in sentences.texts)
    return dataclasses.replace(narrow, width=widest)
