"""Without a causal mask, or in one layer, the order of the demonstrations has no effect.

Papers: A2, Remark 1, whose order sensitivity its own model lacks. docs/theory, "The order of
demonstrations".
"""

import numpy as np
import pytest

from draws import draw_rotation, draw_stack, draw_transformer, forward, jit_numpy, seeds
from lsa_lab.models import transformer

N, E, HEADS, KEY_WIDTH = 6, 4, 2, 3
forward_softmax = jit_numpy(transformer.forward)


def measure_effects(seed, kind, layers, keys):
    """What a permutation and a rotation of the demonstrations do to ŷ, relative to |ŷ| or 1."""
    rng = np.random.default_rng(seed)
    tokens, order = rng.normal(size=(N + 1, E)), np.append(rng.permutation(N), N)
    tokens[-1, -1] = 0
    prompts = tokens, tokens[order], np.vstack([draw_rotation(rng, N) @ tokens[:-1], tokens[-1:]])
    if kind == "linear":
        params = draw_stack(rng, layers, HEADS, E)
        traces = [forward(params, prompt, keys=keys) for prompt in prompts]
    else:
        params = draw_transformer(rng, layers, HEADS, KEY_WIDTH, E, 0.3)
        config = transformer.Config(E, layers, HEADS, KEY_WIDTH, keys=keys)
        traces = [forward_softmax(params, prompt, config) for prompt in prompts]
    answers = np.array([trace.stream[-1, -1, -1] for trace in traces])
    return np.abs(answers[1:] - answers[0]) / max(1, abs(answers[0]))


@pytest.mark.parametrize(("layers", "keys"), [(4, "demonstrations"), (3, "all"), (1, "causal")])
@seeds
def test_order_has_no_effect_without_a_causal_mask_or_on_one_layer(layers, keys, seed):
    linear, softmax = (measure_effects(seed, kind, layers, keys) for kind in ("linear", "softmax"))
    assert max(*linear, softmax[0]) < 1e-10
    if seed == 0 and keys == "causal":  # Control: two layers see the order, softmax a rotation
        assert min(measure_effects(seed, "linear", 2, keys)[0], softmax[1]) > 1e-3
