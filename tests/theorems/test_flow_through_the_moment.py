"""The flow of masked linear attention is (1/n) (G + Gᵀ) e_i, G = ∂ŷ/∂S_0: one linear map of every
demonstration's token. Demonstrations of one linear layer add up: interactions = diag(2 c_i), c_i
what i contributes, for it is Σ_i α_i² c_i in the gates α, being quadratic in every token by itself.

docs/theory, "The flow through the moment", "Demonstrations add up in one layer".
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, jit_numpy, seeds, stack_sizes
from lsa_lab import prompts
from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention, moments, trace, transformer

N, D = 4, 2
KEYS = ["demonstrations", "all", "causal"]
LINEAR = {keys: functools.partial(linear_attention.forward, keys=keys) for keys in KEYS}


@functools.partial(jit_numpy, static_argnames="keys")
def flow_by_tokens(params, prompt, keys):  # [L, n, e, e_out]
    def queries(demonstrations):
        tokens = jnp.concatenate([demonstrations, prompts.tokens(prompt)[-1:]])
        return linear_attention.forward(params, tokens, keys=keys).stream[1:, -1]

    return jnp.moveaxis(jax.jacfwd(queries)(prompts.tokens(prompt)[:-1]), 1, -1)


@jit_numpy
def flows_by_moment(params, prompt, query_share):  # [L, n, e], [L, n, e, e_out]
    """The flow, and that of all of a token, at the moment S_0 + share q qᵀ/n."""
    rows, n = prompts.tokens(prompt), len(prompt.y)

    def queries(second_moment):  # [L, e]
        return moments.layer_maps(params, second_moment)[1:] @ rows[-1]

    moment = prompts.second_moment(prompt) + query_share * jnp.outer(rows[-1], rows[-1]) / n
    slopes = jax.jacfwd(queries)(moment)  # [L, e_out, e, e]
    token_flow = jnp.einsum("ia,ltab->libt", rows[:-1], slopes + slopes.mT) / n
    return amplification.moment_flow(params, prompt), token_flow


@stack_sizes
@seeds
def test_the_moment_carries_the_whole_flow_and_unmasked_that_of_all_tokens(size, seed):
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    case = draw_stack(rng, num_layers, num_heads, d + 1), draw_prompt(rng, n, d)
    masked, unmasked, causal = (flow_by_tokens(*case, keys=keys) for keys in KEYS)
    flow, token_flow = flows_by_moment(*case, 0.0)
    differences = flow + masked[..., -1], token_flow - masked
    assert max(np.abs(d).max() for d in differences) < 1e-10 * np.abs(masked).max()
    difference = flows_by_moment(*case, 1.0)[1] - unmasked
    assert np.abs(difference).max() < 1e-10 * np.abs(unmasked).max()
    if seed == 0 and d == 3:  # Control: other masks have another flow
        for other in (unmasked, causal):
            assert np.abs(token_flow - other).max() > 1e-3 * np.abs(other).max()


@functools.partial(jit_numpy, static_argnums=0)
def answers_and_interactions(forward, params, prompt):  # [n+1], [n, n]
    """The answer and those without each token, n unchanged, and ∂²ŷ/∂α_i∂α_j at α = 1,
    demonstration i entering as α_i e_i."""
    tokens, ones = prompts.tokens(prompt), jnp.ones(N)

    def answer(gates):
        return trace.predict(forward(params, tokens * jnp.append(gates, 1.0)[:, None]))

    kept = jnp.concatenate([ones[None], 1 - jnp.eye(N)])
    return jax.vmap(answer)(kept), jax.hessian(answer)(ones)


def error(forward, seed, make_params=lambda merged: merged, num_layers=1):
    rng = np.random.default_rng(seed)
    params = make_params(draw_stack(rng, num_layers, 2, D + 1, 0.5))
    (whole, *without), hessian = answers_and_interactions(forward, params, draw_prompt(rng, N, D))
    return np.abs(hessian - np.diag(2 * (whole - without))).max() / np.abs(hessian).max()


@pytest.mark.parametrize("keys", KEYS)
@seeds
def test_demonstrations_of_one_linear_layer_add_up(keys, seed):
    assert error(LINEAR[keys], seed) < 1e-10


def test_control_a_second_layer_and_softmax_let_them_interact():
    def separate(merged):
        identity = np.broadcast_to(np.eye(D + 1), merged.w_kq.shape)
        return transformer.Params(w_q=merged.w_kq, w_k=identity, w_v=merged.w_pv, w_o=identity)

    assert error(LINEAR["demonstrations"], 0, num_layers=2) > 1e-2
    config = transformer.Config(D + 1, 1, 2, D + 1)
    assert error(functools.partial(transformer.forward, config=config), 0, separate) > 1e-2
