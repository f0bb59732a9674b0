"""`lm_family`: its tasks, its training that resumes, chance before it, and the theme on its
decoders."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import __main__ as program
from experiments.language import vocabulary
from experiments.language.lm_family import family, mixture
from experiments.language.lm_family.config import TIERS, Size
from experiments.models.train import WEIGHTS
from lsa_lab import lm
from lsa_lab.training import loop

CONFIG = TIERS["smoke"]
SIZE = Size("small", 2, 16)
CORPUS = mixture.read(CONFIG.mixture, CONFIG.seed)
KEY = jax.random.key(3)


def test_a_label_word_stands_for_one_class_and_for_another_in_the_next_prompt():
    draw = jax.jit(jax.vmap(partial(mixture.mapping, length=24, words=CORPUS.words)))
    ids, counts = map(np.asarray, draw(jax.random.split(KEY, 40)))
    class_of = {word: c for c, row in enumerate(CORPUS.words.classes) for word in row.tolist()}
    assert len(class_of) == 64
    maps = []
    for row in ids:
        pairs = {(class_of[word], label) for word, label in row.reshape(-1, 2).tolist()}
        assert 1 <= len(pairs) == len({c for c, _ in pairs}) == len({w for _, w in pairs}) <= 4
        maps.append(frozenset(pairs))
    assert len(set(maps)) > 35
    assert (counts == np.arange(24) % 2).all()


def test_copies_and_counts_are_right():
    ids, counts = map(np.asarray, mixture.copying(KEY, 24, 160))
    period = int(np.flatnonzero(counts)[0])
    np.testing.assert_array_equal(ids[period:], ids[:-period])
    ids, counts = map(np.asarray, mixture.counting(KEY, 24, CORPUS.words))
    for block in ids.reshape(-1, 6).tolist():
        assert block[-1] == CORPUS.words.numbers[block[:-1].count(block[0]) - 1]
    assert counts.sum() == 4


def test_a_question_is_asked_before_its_label_and_shuffled_labels_are_others():
    ask = partial(mixture.ask, words=CORPUS.words, shots=(0, 1, 4))
    question, shuffled = ask(KEY, shuffled=False), ask(KEY, shuffled=True)
    np.testing.assert_array_equal(question.places, [0, 2, 8])
    answers = question.names[question.right]
    np.testing.assert_array_equal(question.ids[question.places + 1], answers)
    np.testing.assert_array_equal(question.ids[::2], shuffled.ids[::2])
    keys = jax.random.split(KEY, 200)
    labels = jax.jit(jax.vmap(partial(ask, shuffled=True)))(keys)
    agree = labels.ids[:, 9] == jnp.take_along_axis(labels.names, labels.right[:, 2:], 1)[:, 0]
    assert 0.4 < agree.mean() < 0.6


@pytest.fixture
def cached(tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loop, "_SAVE_EVERY", 0.0)


@pytest.mark.slow
def test_a_training_resumes_to_the_bit_and_begins_at_chance(cached):
    class Killer:  # of the second chunk, after the first is saved
        chunks = 0

        def add_task(self, *_, **__):
            return 0

        def update(self, *_, **__):
            self.chunks += 1
            if self.chunks == 2:
                raise InterruptedError

    config = dataclasses.replace(CONFIG, prompts=200)
    with pytest.raises(InterruptedError):
        family.train(SIZE, config, CORPUS, Killer())
    checkpoint = family.place_of(SIZE, config).with_suffix(".ckpt")
    assert checkpoint.exists()
    resumed = family.train(SIZE, config, CORPUS)
    checkpoint.unlink()
    whole = family.train(SIZE, config, CORPUS)
    both = [jax.tree.leaves((run.params, run.history)) for run in (resumed, whole)]
    for own, other in zip(*both, strict=True):
        np.testing.assert_array_equal(own, other)
    before = whole.history["watch"]
    assert np.abs(before["mapping"][:, 0] - 0.5).max() < 0.12
    assert before["copying"][:, 0].max() < 0.1
    loss = whole.history["loss"]
    assert loss.shape == (2, 4)
    assert np.abs(loss[:, 0] - np.log(CONFIG.mixture.vocabulary)).max() < 1


DECODERS = sorted((WEIGHTS / "decoders").iterdir())


def test_committed_decoders_learn_from_demonstrations():
    keys = jax.random.split(KEY, 100)
    for place in DECODERS:
        model = lm.load(place)
        words = vocabulary.words_of(model.tokenizer)
        read = partial(
            family.shares_right, shape=model.config, words=words, shots=(0, 8), keys=keys
        )
        shares, shuffled = jax.jit(read)(model.params)
        assert shares[1] > 0.95
        chance = jnp.array([shares[0], *shuffled])
        assert jnp.abs(chance - 0.5).max() < 0.16  # three standard errors
    assert len(DECODERS) == 3


@pytest.mark.slow
def test_the_theme_asks_a_decoder_of_the_family(tmp_path):
    model = {"model": str(DECODERS[0]), "model_name": DECODERS[0].name, "sha256": ""}
    smoke = program.load("lm_flow", "config").TIERS["smoke"]
    grads = dataclasses.replace(smoke.grads, layers=(1, 2))  # it has two layers
    config = dataclasses.replace(smoke, layers=(1, 2), grads=grads, **model)
    dataset = program.compute("lm_flow", config, tmp_path)
    assert np.isfinite(dataset.shared).all()
