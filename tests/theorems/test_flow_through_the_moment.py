"""The flow of masked linear attention is (1/n) (G + Gᵀ) e_i, G = ∂ŷ/∂S_0.

docs/theory, "The flow through the moment". Sides: tangents pushed through the forward pass over all
tokens; G of the recursion on one matrix. So every demonstration's flow is one linear map of its
token, whatever the others are.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab import prompts
from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention, moments
from lsa_lab.prompts import Prompt

SHAPE = (3, 2, 3, 4)  # L, H, d, n


def draw(seed, shape):
    num_layers, num_heads, d, n = shape
    rng = np.random.default_rng(seed)
    prompt = Prompt(rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d), np.zeros(()))
    weights = 0.3 * rng.normal(size=(2, num_layers, num_heads, d + 1, d + 1))
    return linear_attention.Params(*weights), prompt


@functools.partial(jit_numpy, static_argnames="keys")
def by_tokens(params, prompt, keys="demonstrations"):  # [L, n, e, e_out]
    def queries(demonstrations):
        tokens = jnp.concatenate([demonstrations, prompts.tokens(prompt)[-1:]])
        return linear_attention.forward(params, tokens, keys=keys).stream[1:, -1]

    return jnp.moveaxis(jax.jacfwd(queries)(prompts.tokens(prompt)[:-1]), 1, -1)


@jit_numpy
def by_moment(params, prompt):  # [L, n, e], [L, n, e, e_out]
    flow = amplification.moment_flow(params, prompt)
    return flow, amplification.moment_token_flow(params, prompt)


def discrepancy(seed, shape, keys="demonstrations"):
    params, prompt = draw(seed, shape)
    expected = by_tokens(params, prompt, keys)
    flow, token_flow = by_moment(params, prompt)
    differences = flow + expected[..., -1], token_flow - expected
    return max(np.abs(d).max() for d in differences) / np.abs(expected).max()


@seeds
def test_the_moment_carries_the_whole_flow(seed):
    assert discrepancy(seed, SHAPE) < 1e-10


@jit_numpy
def unmasked(params, prompt):  # [n, e]
    rows = prompts.tokens(prompt)

    def answer(second_moment):
        return -moments.layer_maps(params, second_moment)[-1, -1] @ rows[-1]

    slope = jax.grad(answer)(rows.T @ rows / (len(rows) - 1))  # S_0 + q qᵀ/n
    return rows[:-1] @ (slope + slope.T) / (len(rows) - 1)


@seeds
def test_unmasked_the_formula_holds_at_the_moment_of_all_tokens(seed):
    params, prompt = draw(seed, SHAPE)
    expected = -by_tokens(params, prompt, "all")[-1, ..., -1]
    difference = unmasked(params, prompt) - expected
    assert np.abs(difference).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_control_other_masks_have_another_flow(keys):
    assert discrepancy(0, SHAPE, keys) > 1e-3
