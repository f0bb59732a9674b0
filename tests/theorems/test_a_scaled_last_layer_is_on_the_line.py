"""Scaling what the last layer writes by κ answers (1 - κ) ŷ_{L-1} + κ ŷ_L.

docs/theory, "An edit moves one number", (iii). Sides: the forward pass of the edited stack; the
last two answers of the stack as it was, at many queries.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt, tokens

D, N, QUERIES, L = 3, 6, 12, 3


@jit_numpy
def answers(params, x, y, queries):  # [Q, L+1]
    def answer(query):
        prompt = Prompt(x, y, query, jnp.zeros(()))
        return layer_predictions(linear_attention.forward(params, tokens(prompt)))

    return jax.vmap(answer)(queries)


def draw(seed):
    rng = np.random.default_rng(seed)
    stack = Params(*rng.normal(size=(2, L, 1, D + 1, D + 1)) / 2)
    return stack, (rng.normal(size=(N, D)), rng.normal(size=N), rng.normal(size=(QUERIES, D)))


def miss(seed, layer, factor=0.4):
    """How far the answers are from the line's point κ, over the largest of them."""
    params, prompts = draw(seed)
    scale = np.where(np.arange(L) == layer, factor, 1.0)[:, None, None, None]
    edited = answers(params.replace(w_pv=scale * params.w_pv), *prompts)[:, -1]
    *_, before, last = answers(params, *prompts).T
    stated = (1 - factor) * before + factor * last
    return np.abs(edited - stated).max() / np.abs(stated).max()


@seeds
def test_the_answer_is_on_the_line_between_the_last_two(seed):
    assert miss(seed, L - 1) < 1e-10


@pytest.mark.parametrize("layer", range(L - 1))
def test_control_an_earlier_layer_that_is_scaled_leaves_the_line(layer):
    assert np.median([miss(seed, layer) for seed in range(10)]) > 1e-3
