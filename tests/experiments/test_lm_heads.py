"""Closed heads and slopes of `lm_heads`, beside the whole walk of a tiny decoder."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.language.lm_heads import closings
from lsa_lab import lm
from lsa_lab.analyses import heads
from lsa_lab.lm import decoder, weights
from lsa_lab.lm.config import Config

SHAPE = Config(
    num_layers=3,
    num_heads=4,
    num_groups=2,
    key_width=4,
    width=16,
    mlp_width=24,
    vocabulary=40,
    context=128,
    rotary_width=4,
    tied=True,
)
LAYER, HEAD = 1, 2


@functools.cache
def tiny():
    return lm.Decoder(SHAPE, weights.init(jax.random.key(0), SHAPE, "float64"), None)


def draw(tokens=6, questions=5):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 40, (questions, 4))
    return rng.integers(0, 40, tokens), ids, np.full(questions, 3), rng.integers(0, 2, questions)


def whole_walk(model, mask=None):
    """Scores of the labels by one forward pass of each whole prompt."""
    prefix, questions, _, _ = draw()

    @jax.jit
    def one(ids):
        stream = decoder.embed(model.params, jnp.concatenate([prefix, ids]), model.config)
        walk = decoder.forward(model.params, stream, model.config, mask)
        return decoder.logits(model.params, walk.stream[-1, -1], model.config, jnp.array([3, 7]))

    return np.array([one(ids) for ids in questions])


def closing(layers=(0, LAYER)):
    model = closings.add_write_biases(tiny())
    prefix, questions, last, _ = draw()
    return closings.Closings(model, prefix, questions, last, np.array([3, 7]), layers)


def test_a_bias_of_nothing_changes_no_bit():
    model = closings.add_write_biases(tiny())
    np.testing.assert_array_equal(whole_walk(model), whole_walk(tiny()))
    assert closings.add_write_biases(model) is model


def test_heads_closed_at_a_halt_are_closed_in_the_whole_walk():
    mask = closings.close_heads(SHAPE, (LAYER, HEAD), (LAYER, 0))
    assert mask.sum() == 10
    np.testing.assert_allclose(closing().scores(LAYER, mask), whole_walk(tiny(), mask), rtol=1e-10)
    np.testing.assert_allclose(closing().scores(0), whole_walk(tiny()), rtol=1e-10)


def test_a_mean_write_stands_in_the_place_of_a_closed_head():
    means = closings.mean_writes(tiny().params, draw()[0], config=SHAPE)
    mask = closings.close_heads(SHAPE, (LAYER, HEAD))
    filled = closing().scores(LAYER, mask, means[LAYER, HEAD])
    model = closings.add_write_biases(tiny())
    biases = model.params.b_o.at[LAYER].set(means[LAYER, HEAD])
    filled_model = model._replace(params=model.params.replace(b_o=biases))
    np.testing.assert_allclose(filled, whole_walk(filled_model, mask), rtol=1e-10)
    assert not np.allclose(filled, closing().scores(LAYER, mask))


def test_slopes_are_those_of_the_library():
    prefix, questions, last, labels = draw()
    words = jnp.array([3, 7])
    arrays = prefix, questions, last, labels, words
    slopes = closings.slopes(tiny().params, *arrays, config=SHAPE)

    def loss(mask):
        stream = decoder.embed(tiny().params, jnp.concatenate([prefix, questions[0]]), SHAPE)
        row = decoder.forward(tiny().params, stream, SHAPE, mask).stream[-1, -1]
        return -jax.nn.log_softmax(decoder.logits(tiny().params, row, SHAPE, words))[labels[0]]

    np.testing.assert_allclose(-slopes[0], heads.first_order(jax.jit(loss), 3, 4), rtol=1e-8)
