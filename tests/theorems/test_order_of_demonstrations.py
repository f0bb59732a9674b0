"""Without a causal mask the order of the demonstrations has no effect.

docs/theory, "The order of demonstrations". Sides: a forward pass over the prompt, and over the same
prompt with its demonstrations permuted.
"""

import functools

import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.trace import predict

N, E, HEADS, KEY_WIDTH = 6, 4, 2, 3
SOFTMAX = transformer.Config(E, 2, HEADS, KEY_WIDTH)
CAUSAL = transformer.Config(E, 1, HEADS, KEY_WIDTH, keys="causal")


def draw(seed, *weight_shapes):
    """A random prompt [T, e], the same with other demonstrations, and weights."""
    rng = np.random.default_rng(seed)
    tokens = rng.normal(size=(N + 1, E))
    tokens[-1, -1] = 0
    permuted, rotated = np.copy(tokens), np.copy(tokens)
    permuted[:-1] = rng.permutation(tokens[:-1])
    rotated[:-1] = np.linalg.qr(rng.normal(size=(N, N)))[0] @ tokens[:-1]
    return (tokens, permuted, rotated), [0.3 * rng.normal(size=s) for s in weight_shapes]


@functools.partial(jax.jit, static_argnames="keys")
def linear_prediction(w_kq, w_pv, tokens, keys):
    params = linear_attention.Params(w_kq, w_pv)
    return predict(linear_attention.forward(params, tokens, keys=keys))


@functools.partial(jax.jit, static_argnames="model")
def softmax_prediction(w_q, w_k, w_v, w_o, tokens, model):
    return transformer.predict(transformer.Params(w_q, w_k, w_v, w_o), tokens, model)


def linear_effects(seed, num_layers, keys):
    """What a permutation and a rotation do to ŷ, relative to |ŷ| or 1."""
    shape = (num_layers, HEADS, E, E)
    prompts, weights = draw(seed, shape, shape)
    first, *others = (float(linear_prediction(*weights, p, keys)) for p in prompts)
    return np.abs(np.subtract(others, first)) / max(1, abs(first))


def softmax_effects(seed, model=SOFTMAX):
    layers = model.num_layers
    reads, writes = (layers, HEADS, KEY_WIDTH, E), (layers, HEADS, E, KEY_WIDTH)
    prompts, weights = draw(seed, reads, reads, reads, writes)
    first, *others = (float(softmax_prediction(*weights, p, model)) for p in prompts)
    return np.abs(np.subtract(others, first))


@pytest.mark.parametrize(
    ("num_layers", "keys"), [(1, "demonstrations"), (4, "demonstrations"), (3, "all")]
)
@seeds
def test_order_has_no_effect_without_a_causal_mask(num_layers, keys, seed):
    assert linear_effects(seed, num_layers, keys).max() < 1e-10


@seeds
def test_order_has_no_effect_on_one_causal_layer(seed):
    assert linear_effects(seed, 1, "causal").max() < 1e-10


def test_control_order_matters_to_two_causal_layers():
    assert np.median([linear_effects(seed, 2, "causal")[0] for seed in range(20)]) > 1e-3


@seeds
def test_softmax_does_not_see_the_order(seed):
    assert softmax_effects(seed)[0] < 1e-10
    assert softmax_effects(seed, CAUSAL)[0] < 1e-10


def test_control_softmax_sees_a_rotation_of_the_demonstrations():
    assert np.median([softmax_effects(seed)[1] for seed in range(20)]) > 1e-3
