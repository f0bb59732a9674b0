"""Flows of a decoder, against differences: by layer, and to a prefix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.lm import decoder, flow, prefix
from lsa_lab.lm.config import Config
from lsa_lab.lm.weights import init

CONFIG = Config(
    num_layers=3, num_heads=2, num_groups=1, key_width=4, width=8, mlp_width=6, vocabulary=11,
    context=16, rotary_width=4,
)  # fmt: skip
PARAMS = jax.jit(init, static_argnums=1)(jax.random.key(0), CONFIG)
IDS = jnp.array([3, 1, 4, 1, 5, 9])
STREAM = decoder.embed(PARAMS, IDS, CONFIG)
MARGIN = flow.margin(PARAMS, CONFIG, 7, 2)
token_flow = jax.jit(flow.token_flow, static_argnames="layers")


@jax.jit
def margins(stream):  # of the last row before the first layer and after each
    return jax.vmap(MARGIN)(decoder.forward(PARAMS, stream, CONFIG).stream[:, -1])


def test_a_margin_is_a_difference_of_logits_through_the_lens():
    walk = decoder.forward(PARAMS, STREAM, CONFIG)
    scores = decoder.logits(PARAMS, walk.stream[:, -1], CONFIG)
    np.testing.assert_allclose(margins(STREAM), scores[:, 7] - scores[:, 2], atol=1e-12)
    two = decoder.logits(PARAMS, walk.stream[:, -1], CONFIG, words=jnp.array([7, 2]))
    np.testing.assert_allclose(two, scores[:, [7, 2]], atol=1e-12)


@pytest.mark.parametrize("layer", [1, 3])
def test_the_flow_is_the_slope_of_the_margin(layer):
    (rows,) = token_flow(PARAMS, STREAM, CONFIG, MARGIN, layers=(layer,))
    step = 1e-5 * jax.random.normal(jax.random.key(1), STREAM.shape)
    ahead, back = (margins(STREAM + s) for s in (step, -step))
    np.testing.assert_allclose((rows * step).sum(), (ahead - back)[layer] / 2, rtol=1e-6)
    assert abs((rows * step).sum() - (ahead - back)[2] / 2) > 1e-7  # control: another layer's


def test_the_flow_to_a_prefix_is_that_of_the_whole_prompt():
    rest = decoder.embed(PARAMS, IDS[4:], CONFIG, start=4)
    streams = jnp.stack([rest, rest[::-1]])

    def of_prefix(stream, place):
        return flow.prefix_flow(
            PARAMS, STREAM[:4], stream, CONFIG, MARGIN, layers=(1, 2), place=place
        )

    flows = jax.jit(jax.vmap(of_prefix))(streams, jnp.array([1, 0]))
    for own, stream, place in zip(flows, streams, (5, 4), strict=True):
        whole = jnp.concatenate([STREAM[:4], stream])
        expected = token_flow(PARAMS, whole, CONFIG, MARGIN, layers=(1, 2), place=place)
        np.testing.assert_allclose(own, expected[:, :4], atol=1e-12)


EXAMPLE = prefix.Example(ids=jnp.array([4, 1, 5, 0, 0]), last=jnp.array(2), label=jnp.array(1))


def test_a_prefix_of_embeddings_is_a_prefix_of_words():
    words, label_ids = jnp.array([3, 8]), jnp.array([7, 2])
    rows = PARAMS.embedding[words]
    loss = prefix.loss(rows, PARAMS, EXAMPLE, config=CONFIG, label_ids=label_ids)
    ids = jnp.concatenate([words, EXAMPLE.ids[:3]])
    walk = decoder.forward(PARAMS, decoder.embed(PARAMS, ids, CONFIG), CONFIG)
    scores = decoder.logits(PARAMS, walk.stream[-1, -1], CONFIG)[label_ids]
    np.testing.assert_allclose(loss, jnp.logaddexp(*scores) - scores[1], atol=1e-12)
