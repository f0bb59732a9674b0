"""Collections of texts in two classes, and the token ids of prompts that show them.

A question is a separator, the beginning of a text, and the opening of its label; all questions have
one width W. A prompt is

    start · separator · question label · question label ... · question

The first separator takes the first place of all, to which models attend whatever stands there (Xiao
et al. 2309.17453).
"""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lsa_lab.lm.text import Sentences, Template, load_sentences
from lsa_lab.lm.tokens import Tokenizer

INVENTED_WORDS = ("dull", "bright", "slow", "warm", "film", "the", "a", "was", "end", "start")
CONTENT_FREE = ("N/A", "[MASK]", ".")  # repeated: texts that say nothing (Zhao et al. 2102.09690)
MOST = 200  # texts of a class that are read


@dataclass(frozen=True)
class Collection:
    """Texts of two classes, and the words by which a prompt calls the classes."""

    source: str  # of lsa_lab.lm.text.load_sentences, or "invented"
    classes: tuple[str, str]  # in the source
    words: tuple[str, str]
    form: str


REVIEW = "Review: {text}\nSentiment: {label}\n\n"
TWEET = "Tweet: {text}\nAuthor: {label}\n\n"
_SENTIMENTS = ("negative", "positive")
_AUTHORS = ("HillaryClinton", "realDonaldTrump")


def _topics(source, kind, *pairs):  # of (class, word) pairs
    form = f"{kind}: {{text}}\nTopic: {{label}}\n\n"
    rows = [tuple(zip(*pair, strict=True)) for pair in pairs]  # classes, words
    return {"/".join(words): Collection(source, classes, words, form) for classes, words in rows}


COLLECTIONS = {
    "rotten tomatoes": Collection("rotten_tomatoes", _SENTIMENTS, _SENTIMENTS, REVIEW),
    "imdb": Collection("imdb", _SENTIMENTS, _SENTIMENTS, REVIEW),
    "tweets": Collection("tweets", _AUTHORS, ("Clinton", "Trump"), TWEET),
    **_topics("reuters", "News",
        (("acq", "acquisition"), ("earn", "earnings")),
        (("crude", "oil"), ("trade", "trade")),
        (("money-fx", "money"), ("ship", "shipping")),
    ),
    **_topics("newsgroups", "Post",
        (("sci.space", "space"), ("rec.sport.hockey", "hockey")),
        (("sci.med", "medicine"), ("rec.autos", "cars")),
        (("comp.graphics", "graphics"), ("talk.politics.guns", "guns")),
        (("sci.crypt", "encryption"), ("rec.motorcycles", "motorcycles")),
        (("rec.sport.baseball", "baseball"), ("talk.politics.mideast", "Israel")),
        (("sci.electronics", "electronics"), ("soc.religion.christian", "religion")),
    ),
}  # fmt: skip
TWELVE = tuple(COLLECTIONS)
INVENTED = "invented"  # sentences of a few words, for tests
COLLECTIONS[INVENTED] = Collection(INVENTED, _SENTIMENTS, _SENTIMENTS, REVIEW)


class Pool(NamedTuple):
    """The texts of a collection as questions of one width, of classes 0 and 1."""

    questions: np.ndarray  # [N, W]
    labels: np.ndarray  # [N]
    texts: tuple[str, ...]  # [N]  what a question holds of each text
    words: np.ndarray  # [2]  the token of each class
    start: np.ndarray  # what stands before the first question
    content_free: np.ndarray  # [K, W]  questions whose text says nothing

    def write(self, rows) -> np.ndarray:  # [n] -> [P], P = start + n (W + 1)
        """Return the token ids of demonstrations in this order."""
        labelled = np.column_stack([self.questions[rows], self.words[self.labels[rows]]])
        return np.concatenate([self.start, labelled.ravel()])

    def find_spans(self, count: int) -> np.ndarray:  # [n, 2]
        """Return where each of n demonstrations begins and ends among the token ids."""
        ends = len(self.start) + (self.questions.shape[1] + 1) * np.arange(count + 1)
        return np.stack([ends[:-1], ends[1:]], axis=1)


def read_pool(name: str, tokenizer: Tokenizer, width: int, seed: int) -> Pool:
    """Return up to MOST texts of each class that are long enough, each cut to ``width`` tokens."""
    collection = COLLECTIONS[name]
    whole = _invent() if collection.source == INVENTED else load_sentences(collection.source)
    sentences = whole.select_classes(*collection.classes)
    template = Template(collection.words, collection.form)
    before, _, after = template.form.partition("{text}")
    opening = tokenizer.encode(template.separator + before.rstrip(), follows=True)
    ending = tokenizer.encode(after.partition("{label}")[0].rstrip(" "), follows=True)
    room = width - len(opening) - len(ending)
    rows, cut, left = [], [], [MOST, MOST]
    for row in np.random.default_rng(seed).permutation(len(sentences)).tolist():
        if not left[label := int(sentences.labels[row])]:
            continue
        beginning = " ".join(sentences.texts[row].split()[:room])  # a word has a token or more
        ids = tokenizer.encode(f" {beginning}", follows=True)[:room]
        if len(ids) == room:
            rows.append(row)
            cut.append(ids)
            left[label] -= 1
    repeated = (" ".join([word] * room) for word in CONTENT_FREE)
    empty = [tokenizer.encode(text, follows=True)[:room] for text in repeated]
    blank = tokenizer.encode(template.separator, follows=True)[:1] or [0]
    return Pool(
        np.array([[*opening, *ids, *ending] for ids in cut], np.int32),
        np.asarray(sentences.labels)[rows],
        tuple(tokenizer.decode(ids).strip() for ids in cut),
        template.find_label_ids(tokenizer),
        np.array([*tokenizer.start, *blank], np.int32),
        np.array([[*opening, *ids, *ending] for ids in empty], np.int32),
    )


def read_pools(config, tokenizer: Tokenizer) -> list[Pool]:
    """Return the pool of each collection that a configuration names, with its width and seed."""
    return [read_pool(n, tokenizer, config.width, config.seed) for n in config.collections]


def _invent(size: int = 128, length: int = 6) -> Sentences:
    rng, labels = np.random.default_rng(0), np.arange(size) % 2
    texts = tuple(" ".join(rng.choice(INVENTED_WORDS, length)) for _ in range(size))
    return Sentences("invented sentences", texts, labels, _SENTIMENTS)


def draw_rows(rng, labels: np.ndarray, *sizes: int) -> list[np.ndarray]:
    """Draw parts of these sizes that share no text, each with both classes equally often.

    Of an odd part the class of the last text is drawn. The order within a part is random.
    """
    classes = [list(rng.permutation(np.flatnonzero(labels == c))) for c in (0, 1)]
    parts = []
    for size in sizes:
        first = size // 2 + (size % 2) * int(rng.integers(2))
        counts = first, size - first
        if any(len(rows) < count for rows, count in zip(classes, counts, strict=True)):
            raise ValueError(f"parts of {sizes} texts need more than {np.bincount(labels)}")
        pairs = zip(classes, counts, strict=True)
        rows = [rows.pop() for rows, count in pairs for _ in range(count)]
        parts.append(rng.permutation(np.array(rows, int)))
    return parts


_K1, _B = 1.5, 0.75  # how soon a repeated word saturates, and how far long texts are held back


def score_bm25(texts, queries) -> np.ndarray:  # [m], [B] -> [m, B]
    """Return how much of a query's words a text shares (Robertson and Zaragoza 2009),

    Σ_w log(1 + (m - m_w + ½) / (m_w + ½)) f (k + 1) / (f + k (1 - b + b |t| / mean |t|)),

    over the words w of a query; f counts w in the text t, m_w the texts that hold w. Words are
    parts between blanks, in small letters.
    """
    counts = [Counter(text.lower().split()) for text in texts]
    lengths = np.array([count.total() for count in counts])
    holders = Counter(word for count in counts for word in count)
    damping = _K1 * (1 - _B + _B * lengths / lengths.mean())
    scores = np.zeros((len(texts), len(queries)))
    for column, query in zip(scores.T, queries, strict=True):
        for word in query.lower().split():
            f = np.array([count[word] for count in counts])
            rarity = np.log1p((len(texts) - holders[word] + 0.5) / (holders[word] + 0.5))
            column += rarity * f * (_K1 + 1) / (f + damping)
    return scores
