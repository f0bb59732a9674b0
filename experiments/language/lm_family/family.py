"""The family: its decoders, their training, and what is read of any decoder."""

import hashlib
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import Array

from experiments.language import vocabulary
from experiments.language.lm_family import mixture
from experiments.language.lm_family.config import MAPPED, Config, Size
from experiments.language.lm_family.mixture import Corpus
from experiments.language.vocabulary import Words
from lsa_lab import lm
from lsa_lab.files import cache_folder
from lsa_lab.lm import decoder, learning
from lsa_lab.lm.config import Config as Shape
from lsa_lab.lm.decoder import Params
from lsa_lab.training import Files, Run, Training, fit

TOGETHER = 50  # prompts that are read side by side
_HEAD = 16  # coordinates


def shape_of(size: Size, config: Config) -> Shape:
    """The shape of the family's decoders of one size."""
    heads, width = size.width // _HEAD, size.width
    widths = dict(key_width=_HEAD, rotary_width=_HEAD, width=width, mlp_width=2 * width)
    layers = dict(num_layers=size.depth, num_heads=heads, num_groups=heads)
    return Shape(**layers, **widths, vocabulary=config.mixture.vocabulary, context=256, tied=True)


def place_of(size: Size, config: Config) -> Path:
    """Where the runs of a size are kept, without an ending: this code's, of these numbers."""
    numbers = config.mixture, config.runs, config.seed, config.steps, config.learning_rate
    facts = repr((size, *numbers, config.look, config.prompts, config.shots)).encode()
    files = [*(module.__file__ for module in (mixture, vocabulary, learning)), __file__]
    total = hashlib.sha256(b"".join([facts, *(Path(file).read_bytes() for file in files)]))
    return cache_folder() / "family" / f"{size.name}-{total.hexdigest()[:12]}"


def train(size: Size, config: Config, corpus: Corpus, progress=None) -> Run:
    """All runs of a size, resumed from their checkpoint; ``history`` has the readings on the way,
    before the first step and after every ``look`` steps."""
    shape = shape_of(size, config)
    key_init, key_data, key_fresh = jax.random.split(jax.random.key(config.seed), 3)
    place = place_of(size, config)
    training = Training(
        loss=lambda params, batch: learning.loss(params, *batch, shape),
        sample=lambda key: mixture.sample(key, corpus, config.mixture, size.copying),
        optimizer=learning.make_optimizer(config.learning_rate, config.steps),
        steps=config.steps,
        label=f"lm_family: {size.name}",
    )
    init = partial(lm.init, config=shape, dtype=jnp.float32)
    return fit(
        training,
        jax.jit(jax.vmap(init))(jax.random.split(key_init, config.runs)),
        jax.random.split(key_data, config.runs),
        watch=partial(readings, shape=shape, corpus=corpus, config=config, key=key_fresh),
        chunk=config.look,
        files=Files(place.with_suffix(".ckpt"), place.with_suffix(".jsonl")),
        progress=progress,
    )


def readings(
    params: Params, shape: Shape, corpus: Corpus, config: Config, key: Array
) -> dict[str, Array]:
    """Shares of right answers on fresh prompts, and the loss on fresh text."""
    keys, split = jax.random.split(key, 5), jax.random.split
    many, few = config.prompts, config.prompts // 5 + 1
    length, words, texts = config.mixture.length, corpus.words, corpus.fresh
    copying = partial(mixture.copying, length=length, vocabulary=config.mixture.vocabulary)
    counting = partial(mixture.counting, length=length, words=words)
    windows = jax.vmap(lambda key: mixture.window(key, length, texts))(split(keys[4], few))
    most = length // (config.mixture.sentence + 1) - 1
    shares = shares_right(params, shape, words, config.shots, split(keys[0], many))
    sentiments = shares_right(params, shape, words, (most,), split(keys[1], many), texts)
    return dict(zip(MAPPED, shares, strict=True)) | {
        "sentiment": sentiments[0][0],
        "sentiment_shuffled": sentiments[1][0],
        "copying": _tokens(params, shape, copying, split(keys[2], few)),
        "counting": _tokens(params, shape, counting, split(keys[3], few)),
        "text": learning.loss(params, *windows, shape),
    }


def shares_right(
    params: Params, shape: Shape, words: Words, shots: tuple[int, ...], keys: Array, texts=None
) -> tuple[Array, Array]:  # each [shots]
    """The share of right label words by the number of demonstrations, and that with labels which
    have nothing to do with classes; of reviews of ``texts`` their sentiments. A tie counts half."""

    def hits(key: Array, shuffled: bool) -> Array:
        question = mixture.ask(key, words, shots, shuffled, texts)
        rows = learning.last_rows(params, question.ids, shape)[question.places]
        scores = decoder.logits(params, rows, shape, question.names)
        margin = scores[:, 1] - scores[:, 0]
        return (1 + jnp.sign(margin) * jnp.where(question.right == 1, 1.0, -1.0)) / 2

    def share(shuffled: bool) -> Array:
        ask, together = partial(hits, shuffled=shuffled), min(TOGETHER, len(keys))
        return jax.lax.map(ask, keys, batch_size=together).mean(0)

    return share(False), share(True)


def _tokens(params: Params, shape: Shape, task, keys: Array) -> Array:  # []
    """The share of a task's answers that are the likeliest of all words."""

    def share(key: Array) -> tuple[Array, Array]:
        ids, important = task(key)
        rows = learning.last_rows(params, ids, shape)
        right = decoder.logits(params, rows[:-1], shape).argmax(-1).astype(ids.dtype) == ids[1:]
        return (right & important[1:]).sum(), important[1:].sum()

    right, every = jax.lax.map(share, keys, batch_size=min(TOGETHER, len(keys)))
    return right.sum() / every.sum()
