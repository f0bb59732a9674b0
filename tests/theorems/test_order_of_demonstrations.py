"""Without a causal mask, or in one layer, the order of the demonstrations has no effect.

Papers: A2, Remark 1, whose order sensitivity its own model lacks. docs/theory, "The order of
demonstrations".
"""

import functools

import numpy as np
import pytest

from draws import draw_rotation, draw_stack, draw_transformer, forward, jit_numpy, seeds
from lsa_lab.models import transformer
from lsa_lab.models.trace import predict

N, E, HEADS, KEY_WIDTH = 6, 4, 2, 3


@functools.partial(jit_numpy, static_argnames=("layers", "keys"))
def softmax_prediction(params, tokens, layers, keys):
    config = transformer.Config(E, layers, HEADS, KEY_WIDTH, keys=keys)
    return transformer.predict(params, tokens, config)


def effects(seed, kind, layers, keys):
    """What a permutation and a rotation of the demonstrations do to ŷ, relative to |ŷ| or 1."""
    rng = np.random.default_rng(seed)
    tokens, order = rng.normal(size=(N + 1, E)), np.append(rng.permutation(N), N)
    tokens[-1, -1] = 0
    rotated = np.vstack([draw_rotation(rng, N) @ tokens[:-1], tokens[-1:]])
    if kind == "linear":
        params = draw_stack(rng, layers, HEADS, E)
        answers = [predict(forward(params, t, keys=keys)) for t in (tokens, tokens[order], rotated)]
    else:
        case = draw_transformer(rng, layers, HEADS, KEY_WIDTH, E, 0.3)
        prompts = tokens, tokens[order], rotated
        answers = [softmax_prediction(case, t, layers, keys) for t in prompts]
    return np.abs(np.subtract(answers[1:], answers[0])) / max(1, abs(answers[0]))


LINEAR = [(1, "demonstrations"), (4, "demonstrations"), (3, "all"), (1, "causal")]


@pytest.mark.parametrize(("layers", "keys"), LINEAR)
@seeds
def test_order_has_no_effect_without_a_causal_mask_or_on_one_layer(layers, keys, seed):
    assert effects(seed, "linear", layers, keys).max() < 1e-10


@pytest.mark.parametrize(("layers", "keys"), [(2, "demonstrations"), (1, "causal")])
@seeds
def test_softmax_does_not_see_the_order(layers, keys, seed):
    assert effects(seed, "softmax", layers, keys)[0] < 1e-10


def test_control_two_causal_layers_see_the_order_and_softmax_sees_a_rotation():
    causal = [effects(seed, "linear", 2, "causal")[0] for seed in range(20)]
    rotated = [effects(seed, "softmax", 2, "demonstrations")[1] for seed in range(20)]
    assert min(np.median(causal), np.median(rotated)) > 1e-3
