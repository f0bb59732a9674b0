"""The flow of masked linear attention is (1/n) (G + Gᵀ) e_i, G = ∂ŷ/∂S_0: one linear map of every
demonstration's token.

docs/theory, "The flow through the moment".
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, jit_numpy, seeds, stack_sizes
from lsa_lab import prompts
from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention, moments


@functools.partial(jit_numpy, static_argnames="keys")
def flow_by_tokens(params, prompt, keys="demonstrations"):  # [L, n, e, e_out]
    def queries(demonstrations):
        tokens = jnp.concatenate([demonstrations, prompts.tokens(prompt)[-1:]])
        return linear_attention.forward(params, tokens, keys=keys).stream[1:, -1]

    return jnp.moveaxis(jax.jacfwd(queries)(prompts.tokens(prompt)[:-1]), 1, -1)


@jit_numpy
def flow_by_moment(params, prompt):  # [L, n, e], [L, n, e, e_out]
    rows = prompts.tokens(prompt)

    def queries(second_moment):  # [L, e]
        return moments.layer_maps(params, second_moment)[1:] @ rows[-1]

    slopes = jax.jacfwd(queries)(prompts.second_moment(prompt))  # [L, e_out, e, e]
    token_flow = jnp.einsum("ia,ltab->libt", rows[:-1], slopes + slopes.mT) / len(prompt.y)
    return amplification.moment_flow(params, prompt), token_flow


@jit_numpy
def flow_by_moment_of_all_tokens(params, prompt):  # [n, e]
    rows = prompts.tokens(prompt)

    def answer(second_moment):
        return -moments.layer_maps(params, second_moment)[-1, -1] @ rows[-1]

    slope = jax.grad(answer)(rows.T @ rows / (len(rows) - 1))  # S_0 + q qᵀ/n
    return rows[:-1] @ (slope + slope.T) / (len(rows) - 1)


def draw(seed, size):
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    return draw_stack(rng, num_layers, num_heads, d + 1), draw_prompt(rng, n, d)


def error(seed, size, keys="demonstrations"):
    case = draw(seed, size)
    expected, (flow, token_flow) = flow_by_tokens(*case, keys), flow_by_moment(*case)
    differences = flow + expected[..., -1], token_flow - expected
    return max(np.abs(d).max() for d in differences) / np.abs(expected).max()


@stack_sizes
@seeds
def test_the_moment_carries_the_whole_flow(size, seed):
    assert error(seed, size) < 1e-10


@stack_sizes
@seeds
def test_unmasked_the_formula_holds_at_the_moment_of_all_tokens(size, seed):
    case = draw(seed, size)
    expected = -flow_by_tokens(*case, "all")[-1, ..., -1]
    difference = flow_by_moment_of_all_tokens(*case) - expected
    assert np.abs(difference).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_control_other_masks_have_another_flow(keys):
    assert error(0, (3, 2, 5, 3), keys) > 1e-3
