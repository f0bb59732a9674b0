"""`lm_gradient_matching`: subsets, the order of classes, and losses beside cases by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.language import lm_gradient_matching as experiment
from experiments.language import models, texts
from lsa_lab.lm import decoder

LABELS = np.repeat([0, 1], 12)


def test_classes_take_turns_and_the_same_is_last_in_all_prompts_of_a_pool():
    rng, last = np.random.default_rng(0), np.array([0.7, 0.2])
    for members in (np.r_[0:4, 12:16], np.r_[4:8, 20:24]):
        order = experiment.take_turns(rng, members, LABELS, last)
        assert sorted(order) == sorted(members)
        np.testing.assert_array_equal(LABELS[order], [1, 0] * 4)
    order = experiment.take_turns(rng, np.r_[0:6, 12:15], LABELS, last)
    np.testing.assert_array_equal(LABELS[order], [1, 0, 0, 1, 0, 0, 1, 0, 0])
    alone = experiment.take_turns(rng, np.arange(5), LABELS, last)
    assert sorted(alone) == list(range(5))
    assert list(alone) != list(range(5))


def test_matched_subsets_cancel_and_stratified_ones_have_the_shares_of_the_pool():
    config = experiment.Config(m=24, shots=4, orders=2, draws=3)
    gradients = np.zeros((24, 1))
    matched = [3, 7, 11, 20]
    gradients[np.setdiff1d(np.arange(24), matched), 0] = [*np.arange(1, 20), -190]
    chosen = experiment.choose(config, gradients, LABELS, jax.random.key(0))
    assert chosen.shape == (2 + 3 + 3, 4)
    assert [sorted(row) for row in chosen[:2]] == [matched] * 2
    np.testing.assert_array_equal(LABELS[chosen[5:]].sum(1), [2, 2, 2])
    assert all(len({*row}) == 4 for row in chosen.tolist())


def test_divergences_are_from_equal_shares():
    labels = np.array([[0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]])
    expected = [0, 0.25 * np.log(0.5) + 0.75 * np.log(1.5), np.log(2)]
    np.testing.assert_allclose(experiment.find_divergence(labels), expected, atol=1e-12)


def test_the_loss_is_that_of_the_right_word_after_the_whole_prompt():
    model = models.load_model(models.RANDOM)
    pool = texts.read_pool(texts.INVENTED, model.tokenizer, 8, 0)
    found = experiment.find_loss(model, pool, [np.array([0, 1])], np.array([5, 6]))
    losses = []
    for row in (5, 6):
        ids = jnp.asarray(np.concatenate([pool.write(np.array([0, 1])), pool.questions[row]]))
        stream = decoder.embed(model.params, ids, model.config)
        last = decoder.last_stream(model.params, stream, model.config)[-1]
        scores = np.asarray(decoder.logits(model.params, last, model.config, pool.words), float)
        scores -= np.logaddexp(*scores)
        losses.append(-scores[pool.labels[row]])
    np.testing.assert_allclose(found, [np.mean(losses)], rtol=1e-4)
