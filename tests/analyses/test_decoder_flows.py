"""Readings of a walk without a label slot: flows by tokens and spans, and what is refused."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab import prompts
from lsa_lab.analyses import amplification, implicit_gd, probes
from lsa_lab.lm import decoder, weights
from lsa_lab.lm.config import Config
from lsa_lab.models import linear_attention, trace
from lsa_lab.models.trace import Walk
from lsa_lab.prompts import Prompt
from lsa_lab.selection import prefix

CONFIG = Config(4, 4, 2, 2, 8, 10, 13, 16, rotary_width=2)
PARAMS = jit_numpy(weights.init, static_argnums=1)(jax.random.key(0), CONFIG)
IDS = np.array([3, 1, 4, 1, 5, 9, 2, 0, 0])  # two of padding
LAST = 6
STREAM = jit_numpy(decoder.embed, static_argnums=2)(PARAMS, IDS, CONFIG)
SPANS = ((0, 2), (2, 3), (3, 6))
WORDS = np.eye(13)[7] - np.eye(13)[2]


@partial(jax.jit, static_argnums=1)
def margins(stream, last=LAST):  # [T, D] -> [L]
    rows = decoder.forward(PARAMS, stream, CONFIG).stream[1:, last]
    return decoder.logits(PARAMS, rows, CONFIG) @ WORDS


FLOW = jit_numpy(lambda: amplification.flow(margins, STREAM))()


def test_the_flow_is_the_slope_of_what_is_read():
    assert FLOW.shape == (4, 9, 8)
    step = 1e-5 * np.random.default_rng(1).normal(size=STREAM.shape)
    slope = margins(STREAM + step) - margins(STREAM - step)
    np.testing.assert_allclose((FLOW * step[None]).sum((1, 2)), slope / 2, rtol=1e-6)
    assert not FLOW[:, LAST + 1 :].any()  # nothing flows back from the padding
    # Control: read at the padding, the slope is another.
    wrong = margins(STREAM + step, -1) - margins(STREAM - step, -1)
    assert (abs((FLOW * step[None]).sum((1, 2)) - wrong / 2) > 1e-7).all()


def test_passes_may_be_taken_a_few_at_a_time():
    found = jax.jit(lambda: amplification.flow(margins, STREAM, together=3))()
    np.testing.assert_allclose(found, FLOW, atol=1e-13)


def test_the_size_of_a_demonstration_is_that_of_its_tokens():
    sizes = [[np.linalg.norm(layer[a:b]) for a, b in SPANS] for layer in np.asarray(FLOW)]
    np.testing.assert_allclose(np.exp(amplification.log_sizes(FLOW, SPANS)), sizes, rtol=1e-12)
    traced = jax.jit(amplification.log_sizes)(FLOW, jnp.array(SPANS))
    np.testing.assert_allclose(np.exp(traced), sizes, rtol=1e-12)
    huge = np.exp(amplification.log_sizes(1e300 * FLOW, SPANS) - np.log(1e300))
    np.testing.assert_allclose(huge, sizes, rtol=1e-10)
    order = np.argsort(sizes[0])
    ratio = [row[order[-1]] / row[order[0]] for row in sizes]
    np.testing.assert_allclose(amplification.amplification_ratio(FLOW, SPANS), ratio, rtol=1e-12)
    # Control: the same tokens cut elsewhere are other demonstrations.
    moved = amplification.log_sizes(FLOW, ((0, 1), (1, 3), (3, 6)))
    assert (abs(np.exp(moved[:, :2]) - np.array(sizes)[:, :2]) > 1e-6).all()


def walk_of_tokens(params, tokens):
    """A model of merged tokens that leaves a walk and no label slot."""
    found = linear_attention.forward(params, tokens)
    return Walk(found.stream, found.heads)


@functools.cache
def toy():
    rng = np.random.default_rng(0)
    prompt = Prompt(*(jnp.asarray(rng.normal(size=s)) for s in ((5, 2), (5,), (2,), ())))
    return linear_attention.init(jax.random.key(3), 3, 2, 2, 0.4), prompt


READERS = {
    "demonstration_flow": (
        lambda p, q: amplification.demonstration_flow(walk_of_tokens, p, q),
        r"forward returned Walk, not the Trace .*use amplification.flow\(read, tokens\)",
    ),
    "implied_weights": (
        lambda p, q: implicit_gd.implied_weights(walk_of_tokens, p, q),
        r"implied_weights needs a label slot, which the Walk .*lacks: amplification.flow\(read",
    ),
    "contributions": (
        lambda p, q: probes.contributions(walk_of_tokens(p, prompts.tokens(q))),
        "contributions needs a label slot, .*for a direction you read",
    ),
    "example_loss": (
        lambda p, q: prefix.example_loss(walk_of_tokens, p, jnp.ones((2, 3)), q.x[0], q.y[0]),
        r"example_loss needs a label slot, .*example_gradients a loss\(prefix, params, example\)",
    ),
    "predict": (
        lambda p, q: trace.predict(walk_of_tokens(p, prompts.tokens(q))),
        r"a prediction needs a label slot, which the Walk of this forward lacks: .*logits",
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_a_walk_without_a_label_slot_is_refused_with_advice(name):
    call, message = READERS[name]
    with pytest.raises(TypeError, match=message) as refusal:
        call(*toy())
    assert "\n" not in str(refusal.value)
