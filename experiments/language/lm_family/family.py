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
from experiments.language.lm_family.mixture import Corpus, Question
from experiments.language.vocabulary import Words
from lsa_lab import lm
from lsa_lab.lm import decoder, learning
from lsa_lab.lm.config import Config as Shape
from lsa_lab.lm.decoder import Params
from lsa_lab.store import cache
from lsa_lab.training import Files, Run, Training, fit

TOGETHER = 50  # prompts that are read side by side
_HEAD = 16  # coordinates


def shape_of(size: Size, config: Config) -> Shape:
    """The shape of the family's decoders of one size."""
    heads = size.width // _HEAD
    return Shape(
        num_layers=size.depth,
        num_heads=heads,
        num_groups=heads,
        key_width=_HEAD,
        width=size.width,
        mlp_width=2 * size.width,
        vocabulary=config.mixture.vocabulary,
        context=256,
        rotary_width=_HEAD,
        tied=True,
    )


def place_of(size: Size, config: Config) -> Path:
    """Where the runs of a size are kept, without an ending: this code's, of these numbers."""
    numbers = config.mixture, config.runs, config.seed, config.steps, config.learning_rate
    facts = repr((size, *numbers, config.look, config.prompts, config.shots))
    total = hashlib.sha256(facts.encode())
    for module in (mixture, vocabulary, learning):
        total.update(Path(module.__file__).read_bytes())
    total.update(Path(__file__).read_bytes())
    return cache.cache() / "family" / f"{size.name}-{total.hexdigest()[:12]}"


def train(size: Size, config: Config, corpus: Corpus, progress=None) -> Run:
    """All runs of a size, resumed from their checkpoint; ``history`` has the readings on the way,
    before the first step and after every ``look`` steps."""
    shape = shape_of(size, config)
    key_init, key_data, key_fresh = jax.random.split(jax.random.key(config.seed), 3)
    place = place_of(size, config)
    training = Training(
        loss=lambda params, batch: learning.loss(params, *batch, shape),
        sample=lambda key: mixture.sample(key, corpus, config.mixture, size.copying),
        optimizer=learning.optimizer(config.learning_rate, config.steps),
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
        files=Files(place.with_suffix(".ckpt"), place.with_suffix(".jsonl"), repr(size)),
        progress=progress,
    )


def readings(
    params: Params, shape: Shape, corpus: Corpus, config: Config, key: Array
) -> dict[str, Array]:
    """Shares of right answers on fresh prompts, and the loss on fresh text."""
    keys = jax.random.split(key, 5)
    many, few = (
        partial(jax.random.split, num=n) for n in (config.prompts, config.prompts // 5 + 1)
    )
    length, words, texts = config.mixture.length, corpus.words, corpus.fresh
    most = length // (config.mixture.sentence + 1) - 1
    shares = shares_right(params, shape, words, config.shots, many(keys[0]))
    sentiments = shares_right(params, shape, words, (most,), many(keys[1]), texts)
    own = dict(zip(MAPPED, shares, strict=True))
    own |= {"sentiment": sentiments[0][0], "sentiment_shuffled": sentiments[1][0]}
    tasks = {
        "copying": lambda key: mixture.copying(key, length, config.mixture.vocabulary),
        "counting": lambda key: mixture.counting(key, length, words),
    }
    for (name, task), each in zip(tasks.items(), keys[2:], strict=False):
        own[name] = _tokens(params, shape, task, few(each))
    windows = jax.vmap(lambda key: mixture.window(key, length, texts))(few(keys[4]))
    return own | {"text": learning.loss(params, *windows, shape)}


def shares_right(
    params: Params, shape: Shape, words: Words, shots: tuple[int, ...], keys: Array, texts=None
) -> tuple[Array, Array]:  # each [shots]
    """The share of right label words by the number of demonstrations, and that with labels which
    have nothing to do with classes; of reviews of ``texts`` their sentiments."""

    def share(shuffled: bool) -> Array:
        return _right(
            params, shape, lambda key: mixture.ask(key, words, shots, shuffled, texts), keys
        )

    return share(False), share(True)


def _right(params: Params, shape: Shape, ask, keys: Array) -> Array:  # [n]
    """How often the right one of two label words scores more; a tie counts half."""

    def hits(key: Array) -> Array:
        question: Question = ask(key)
        rows = learning.last_rows(params, question.ids, shape)[question.places]
        scores = decoder.logits(params, rows, shape, question.names)
        margin = scores[:, 1] - scores[:, 0]
        return (1 + jnp.sign(margin) * jnp.where(question.right == 1, 1.0, -1.0)) / 2

    return jax.lax.map(hits, keys, batch_size=min(TOGETHER, len(keys))).mean(0)


def _tokens(params: Params, shape: Shape, task, keys: Array) -> Array:  # []
    """The share of a task's answers that are the likeliest of all words."""

    def share(key: Array) -> tuple[Array, Array]:
        ids, important = task(key)
        rows = learning.last_rows(params, ids, shape)
        right = decoder.logits(params, rows[:-1], shape).argmax(-1).astype(ids.dtype) == ids[1:]
        return (right & important[1:]).sum(), important[1:].sum()

    right, every = jax.lax.map(share, keys, batch_size=min(TOGETHER, len(keys)))
    return right.sum() / every.sum()
