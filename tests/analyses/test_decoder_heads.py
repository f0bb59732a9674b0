"""Heads of a decoder, of which several share their keys and values, are judged as any others."""

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.analyses import heads
from lsa_lab.lm import decoder, weights
from lsa_lab.lm.config import Config

CONFIG = Config(2, 4, 2, 2, 8, 10, 13, 16, rotary_width=2)
PARAMS = jax.jit(weights.init, static_argnums=1)(jax.random.key(0), CONFIG)
IDS = jnp.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 0], [8, 9, 7, 0, 0]])
LAST = jnp.array([4, 3, 2])  # padded on the right
LABELS = jnp.array([2, 7, 2])


@jax.jit
def scores(params, head_mask=None):  # [B, V]
    def of_prompt(ids, last):
        walk = decoder.forward(params, decoder.embed(params, ids, CONFIG), CONFIG, head_mask)
        return decoder.logits(params, walk.stream[-1, last], CONFIG)

    return jax.vmap(of_prompt)(IDS, LAST)


@jax.jit
def loss(head_mask):
    gain = jax.nn.log_softmax(scores(PARAMS, head_mask))
    return -jnp.take_along_axis(gain, LABELS[:, None], axis=1).mean()


def test_closing_a_gate_is_cutting_what_the_head_writes():
    mask = jnp.ones((2, 4)).at[1, 2].set(0).at[0, 0].set(0.5)
    cut = heads.masked(PARAMS, "w_o", mask)
    np.testing.assert_allclose(scores(cut), scores(PARAMS, mask), atol=1e-12)
    assert abs(scores(PARAMS) - scores(PARAMS, mask)).max() > 1e-3


def test_importance_and_its_first_order_estimate():
    exact = heads.importance(loss, 2, 4, together=3)
    every = jnp.ones((2, 4))
    by_hand = [loss(every.at[layer, h].set(0)) - loss(every) for layer in (0, 1) for h in range(4)]
    np.testing.assert_allclose(exact.ravel(), by_hand, atol=1e-12)
    estimate = heads.first_order(loss, 2, 4)
    small = 1e-5
    slopes = [
        (loss(every.at[layer, h].add(-small)) - loss(every.at[layer, h].add(small))) / (2 * small)
        for layer in (0, 1)
        for h in range(4)
    ]
    np.testing.assert_allclose(estimate.ravel(), slopes, rtol=1e-6, atol=1e-9)
    assert abs(estimate - exact).max() > 1e-4  # a decoder is not linear in its gates
