"""The words of tasks in words, chosen so that most tokenizers have one token for each."""

from typing import NamedTuple

import numpy as np

from lsa_lab.lm.tokens import Tokenizer

CLASSES = (
    "father mother brother sister son daughter wife husband",
    "head face hand eyes heart hair blood voice",
    "black white red blue green yellow brown gold",
    "day night year month week morning hour minute",
    "house city school street country town home hotel",
    "dog cat horse bird fish lion bear wolf",
    "director actor writer king doctor teacher soldier lawyer",
    "car train ship plane bus boat truck bike",
)
LABELS = (
    "apple river stone cloud table window garden bread music paper silver winter summer forest",
    "island bridge castle mirror candle market letter engine button basket copper cotton desert",
    "flower hammer jacket kitchen ladder",
)
NUMBERS = ("one", "two", "three", "four", "five")
# What templates of the theme write, so that its experiments can ask these decoders too.
TEMPLATES = ("review", "sentiment", "negative", "positive", ":")
ALL = (*TEMPLATES, *" ".join((*CLASSES, *LABELS)).split(), *NUMBERS)


class Words(NamedTuple):
    """The ids of the tasks' words, as one tokenizer has them."""

    start: np.ndarray  # [s]  what stands before every text
    separator: np.ndarray  # [p]  what stands between demonstrations
    classes: np.ndarray  # [C, W]
    labels: np.ndarray  # [K]
    numbers: np.ndarray  # [5]


def words_of(tokenizer: Tokenizer) -> Words:
    """The first token of each word."""

    def ids(words) -> np.ndarray:
        return np.array([tokenizer.encode_word(word)[0] for word in words], np.int32)

    return Words(
        np.array(tokenizer.start, np.int32),
        np.array(tokenizer.encode("\n", follows=True), np.int32),
        np.stack([ids(row.split()) for row in CLASSES]),
        ids(" ".join(LABELS).split()),
        ids(NUMBERS),
    )
