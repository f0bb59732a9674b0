"""The family: its decoders, their training, and what is read of any decoder."""

import hashlib
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import Array

from experiments.language.lm_family import mixture
from experiments.language.lm_family.config import Config, Size
from experiments.language.lm_family.mixture import Corpus, Question, Words
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
    total = hashlib.sha256(repr((size, _facts(config))).encode())
    for file in (mixture.__file__, __file__, learning.__file__):
        total.update(Path(file).read_bytes())
    return cache.cache() / "family" / f"{size.name}-{total.hexdigest()[:12]}"


def _facts(config: Config) -> tuple:
    rest = (config.steps, config.learning_rate, config.look, config.prompts, config.shots)
    return config.mixture, config.runs, config.seed, *rest


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
    own = mapped(
        params, shape, corpus.words, config.shots, jax.random.split(keys[0], config.prompts)
    )
    most = config.mixture.length // (config.mixture.sentence + 1) - 1
    for name, shuffled in (("sentiment", False), ("sentiment_shuffled", True)):
        ask = partial(
            mixture.ask_sentiment,
            words=corpus.words,
            texts=corpus.fresh,
            shots=(most,),
            shuffled=shuffled,
        )
        own[name] = _right(params, shape, ask, jax.random.split(keys[1], config.prompts))[0]
    length = dict(length=config.mixture.length)
    tasks = {
        "copying": partial(mixture.copying, vocabulary=config.mixture.vocabulary, **length),
        "counting": partial(mixture.counting, words=corpus.words, **length),
    }
    for (name, task), each in zip(tasks.items(), keys[2:], strict=False):
        own[name] = _tokens(params, shape, task, jax.random.split(each, config.prompts // 5 + 1))
    window = partial(mixture.window, texts=corpus.fresh, **length)
    windows = jax.vmap(window)(jax.random.split(keys[4], config.prompts // 5 + 1))
    return own | {"text": learning.loss(params, *windows, shape)}


def mapped(
    params: Params, shape: Shape, words: Words, shots: tuple[int, ...], keys: Array
) -> dict[str, Array]:  # each [shots]
    """The share of right label words by the number of demonstrations, and that with labels which
    have nothing to do with classes."""
    return {
        name: _right(
            params,
            shape,
            partial(mixture.ask_mapping, words=words, shots=shots, shuffled=name == "shuffled"),
            keys,
        )
        for name in ("mapping", "shuffled")
    }


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
