"""Demonstrations of one linear layer add up: interactions = diag(2 c_i), c_i what i contributes.

Sides: Hessian-vector products; what the prediction loses when token i is set to zero, n unchanged.
Derived here: one layer is Σ_i α_i² c_i in the gates α, being quadratic in every token by itself.
"""

import functools

import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab import prompts
from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention, trace, transformer
from lsa_lab.prompts import Prompt

N, D = 4, 2
KEYS = ["demonstrations", "all", "causal"]
FORWARDS = {keys: functools.partial(linear_attention.forward, keys=keys) for keys in KEYS}
SOFTMAX = transformer.Config(D + 1, 1, 2, D + 1)
interactions_of = jit_numpy(amplification.interactions, static_argnums=0)


def draw(seed, num_layers=1):
    rng = np.random.default_rng(seed)
    prompt = Prompt(rng.normal(size=(N, D)), rng.normal(size=N), rng.normal(size=D), np.zeros(()))
    return linear_attention.Params(*0.5 * rng.normal(size=(2, num_layers, 2, D + 1, D + 1))), prompt


@functools.partial(jit_numpy, static_argnums=0)
def predict(forward, params, prompt):
    return trace.predict(forward(params, prompts.tokens(prompt)))


def contributions(forward, params, prompt):  # [n]
    def without(i):
        left = np.arange(N) != i
        return prompt.replace(x=prompt.x * left[:, None], y=prompt.y * left)

    full = predict(forward, params, prompt)
    return np.array([full - predict(forward, params, without(i)) for i in range(N)])


def discrepancy(forward, params, prompt):
    hessian = interactions_of(forward, params, prompt)
    expected = np.diag(2 * contributions(forward, params, prompt))
    return np.abs(hessian - expected).max() / np.abs(hessian).max()


@pytest.mark.parametrize("keys", KEYS)
@seeds
def test_demonstrations_of_one_linear_layer_add_up(keys, seed):
    assert discrepancy(FORWARDS[keys], *draw(seed)) < 1e-10


def test_control_a_second_layer_and_softmax_let_them_interact():
    assert discrepancy(FORWARDS["demonstrations"], *draw(0, num_layers=2)) > 1e-2
    merged, prompt = draw(0)
    identity = np.broadcast_to(np.eye(D + 1), merged.w_kq.shape)
    params = transformer.Params(w_q=merged.w_kq, w_k=identity, w_v=merged.w_pv, w_o=identity)
    softmax = functools.partial(transformer.forward, config=SOFTMAX)
    assert discrepancy(softmax, params, prompt) > 1e-2
