"""What the family is trained on and asked: text, and tasks in words, all pure functions of a key.

A prompt is T token ids, and which of them are to be predicted: of a task, its answers.
"""

import re
from collections import Counter
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.language import sentences, vocabulary
from experiments.language.language_config import text_tasks
from experiments.language.lm_family.config import Mixture
from experiments.language.vocabulary import Words
from lsa_lab.lm import tokens
from lsa_lab.lm.tokens import Tokenizer

MOST_CLASSES = 4  # of one prompt
BLOCK = len(vocabulary.NUMBERS) + 1  # tokens of a prompt that count one word


class Texts(NamedTuple):
    text: np.ndarray  # [N], token ids
    reviews: np.ndarray  # [S, w], of one length
    sentiments: np.ndarray  # [S]


class Corpus(NamedTuple):
    """The tokenizer that texts lead to, and texts to train on and to judge by."""

    tokenizer: Tokenizer
    words: Words
    trained: Texts
    fresh: Texts


class Question(NamedTuple):
    """A prompt that is asked at several places, for one of two label words."""

    ids: Array  # [T]
    places: Array  # [n]  the token after which the label comes
    names: Array  # [2]
    right: Array  # [n]


def read(config: Mixture, seed: int) -> Corpus:
    """Nine tenths of the sentences to train on, whose commonest words are known; the rest fresh."""
    parts = []
    for _, task in text_tasks(*config.sources, most_words=1_000_000):
        whole = sentences.read(task)
        ends = np.cumsum([len(text.split()) for text in whole.texts])
        enough = int((ends < config.text_words / len(config.sources)).sum()) + 1
        whole = whole.take(np.random.default_rng(seed).permutation(len(whole))[:enough])
        few = max(len(whole) // 10, 2)
        parts.append(whole.split(seed, len(whole) - few, few))
    trained, fresh = zip(*parts, strict=True)
    texts = (text.lower() for part in trained for text in part.texts)
    counts = Counter(word for text in texts for word in re.findall(r"\w+|[^\w\s]+", text))
    common = [word for word, _ in counts.most_common() if word not in vocabulary.ALL]
    words = [*vocabulary.ALL, *common][: config.vocabulary - 1]
    tokenizer = tokens.make_word_tokenizer(words, plain=True)
    both = (_texts(each, tokenizer, config) for each in (trained, fresh))
    return Corpus(tokenizer, vocabulary.words_of(tokenizer), *both)


def _texts(parts, tokenizer: Tokenizer, config: Mixture) -> Texts:
    rows = [[tokenizer.encode(text) for text in part.texts] for part in parts]
    text = np.array([id for part in rows for row in part for id in row], np.int32)
    long = [i for i, row in enumerate(rows[0]) if len(row) >= config.sentence]
    reviews = np.array([rows[0][i][: config.sentence] for i in long], np.int32)
    return Texts(text, reviews, np.asarray(parts[0].labels, np.int32)[long])


def sample(key: Array, corpus: Corpus, config: Mixture, copies: bool = True):  # [B, T] twice
    """A batch of prompts and what counts of them, so many of each task as the config says; without
    ``copies`` those of copying are of mapping."""
    words, texts = corpus.words, corpus.trained
    text, mapped, copied, *rest = config.shares
    shares = (text, mapped, copied, *rest) if copies else (text, mapped + copied, 0, *rest)
    tasks = (
        partial(window, texts=texts),
        partial(mapping, words=words),
        partial(copying, vocabulary=config.vocabulary),
        partial(counting, words=words),
        partial(sentiment, words=words, texts=texts),
    )
    keys = jax.random.split(key, len(tasks))
    prompts = [
        jax.vmap(partial(task, length=config.length))(jax.random.split(own, count))
        for task, own, count in zip(tasks, keys, shares, strict=True)
        if count
    ]
    return tuple(jnp.concatenate(rows) for rows in zip(*prompts, strict=True))


def window(key: Array, length: int, texts: Texts) -> tuple[Array, Array]:
    """A stretch of text, every word of which is to be predicted."""
    start = jax.random.randint(key, (), 0, len(texts.text) - length)
    ids = jax.lax.dynamic_slice(jnp.asarray(texts.text), (start,), (length,))
    return ids, jnp.ones(length, bool)


def pairs(key: Array, words: Words, count: int, most: int, few: bool = False):
    """Words [n] of two to ``most`` classes, the number of each one's class [n], and label words
    [4] of these classes, which mean nothing outside of this prompt. With ``few`` a class shows one
    to all of its words in this prompt: the fewer, the more often one comes again."""
    keys = jax.random.split(key, 7)
    kinds = jax.random.permutation(keys[0], jnp.asarray(words.classes))[:MOST_CLASSES]
    names = jax.random.permutation(keys[1], jnp.asarray(words.labels))[:MOST_CLASSES]
    number = jax.random.randint(keys[2], (), 2, most + 1)
    which = jax.random.randint(keys[3], (count,), 0, number)
    width = words.classes.shape[1]
    size = jax.random.randint(keys[5], (), 1, width + 1) if few else width
    first = jax.random.randint(keys[6], (MOST_CLASSES,), 0, width)[which]
    column = (first + jax.random.randint(keys[4], (count,), 0, size)) % width
    return kinds[which, column], which, names


def mapping(key: Array, length: int, words: Words) -> tuple[Array, Array]:
    """word label word label ...: the label word of a class, in every prompt another."""
    inputs, which, names = pairs(key, words, -(-length // 2), MOST_CLASSES, few=True)
    ids = jnp.stack([inputs, names[which]], axis=1).ravel()[:length]
    return ids, jnp.arange(length) % 2 == 1


def copying(key: Array, length: int, vocabulary: int) -> tuple[Array, Array]:
    """Random words, again and again."""
    keys = jax.random.split(key)
    period = jax.random.randint(keys[0], (), 4, length // 2 + 1)
    words = jax.random.randint(keys[1], (length // 2,), 1, vocabulary, jnp.int32)
    return words[jnp.arange(length) % period], jnp.arange(length) >= period


def counting(key: Array, length: int, words: Words) -> tuple[Array, Array]:
    """Five words of two kinds, and how many of them are the first one; again with others."""
    keys = jax.random.split(key)
    blocks = -(-length // BLOCK)
    two = jax.vmap(lambda own: jax.random.permutation(own, jnp.asarray(words.classes.ravel()))[:2])
    both = two(jax.random.split(keys[0], blocks))
    other = jax.random.randint(keys[1], (blocks, BLOCK - 1), 0, 2).at[:, 0].set(0)
    rows = jnp.take_along_axis(both, other, axis=1)
    number = jnp.asarray(words.numbers)[BLOCK - 2 - other.sum(1)]
    ids = jnp.concatenate([rows, number[:, None]], axis=1).ravel()[:length]
    return ids, jnp.arange(length) % BLOCK == BLOCK - 1


def sentiment(key: Array, length: int, words: Words, texts: Texts) -> tuple[Array, Array]:
    """Beginnings of reviews, each with the label word that this prompt has for its sentiment."""
    width = texts.reviews.shape[1] + 1
    rows, which, names = _reviews(key, words, texts, length // width)
    ids = jnp.concatenate([rows, names[which][:, None]], axis=1).ravel()
    ids = jnp.pad(ids, (0, length - len(ids)))
    places = jnp.arange(length)
    return ids, (places % width == width - 1) & (places < length // width * width)


def _reviews(key: Array, words: Words, texts: Texts, count: int) -> tuple[Array, Array, Array]:
    keys = jax.random.split(key)
    rows = jax.random.randint(keys[0], (count,), 0, len(texts.reviews))
    names = jax.random.permutation(keys[1], jnp.asarray(words.labels))[:2]
    return jnp.asarray(texts.reviews)[rows], jnp.asarray(texts.sentiments)[rows], names


def ask(
    key: Array, words: Words, shots: tuple[int, ...], shuffled: bool, texts: Texts | None = None
) -> Question:
    """One of two classes after so many demonstrations, or the sentiment of a review of ``texts``;
    ``shuffled`` labels say nothing of them."""
    if texts is None:
        inputs, which, names = pairs(key, words, shots[-1] + 1, 2)
        inputs, names = inputs[:, None], names[:2]
    else:
        inputs, which, names = _reviews(key, words, texts, shots[-1] + 1)
    count, width = inputs.shape
    again = jax.random.randint(jax.random.fold_in(key, 1), (count,), 0, 2)
    label = again if shuffled else which
    separator = jnp.tile(jnp.asarray(words.separator)[None], (count, 1))
    rows = jnp.concatenate([inputs, names[label][:, None], separator], axis=1)
    ids = jnp.concatenate([jnp.asarray(words.start), rows.ravel()])
    at = np.array(shots)
    places = len(words.start) + at * rows.shape[1] + width - 1
    return Question(ids, jnp.asarray(places), names, which[at])
