"""Demonstrations of one linear layer add up: interactions = diag(2 c_i), c_i what i contributes.

One layer is Σ_i α_i² c_i in the gates α, being quadratic in every token by itself; derived here.
docs/theory, "Demonstrations add up in one layer".
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, jit_numpy, seeds
from lsa_lab import prompts
from lsa_lab.models import linear_attention, trace, transformer

N, D = 4, 2
KEYS = ["demonstrations", "all", "causal"]
LINEAR = {keys: functools.partial(linear_attention.forward, keys=keys) for keys in KEYS}


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
