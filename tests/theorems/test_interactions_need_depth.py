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
FORWARDS = {keys: functools.partial(linear_attention.forward, keys=keys) for keys in KEYS}


def draw(seed, num_layers=1):
    rng = np.random.default_rng(seed)
    return draw_stack(rng, num_layers, 2, D + 1, 0.5), draw_prompt(rng, N, D)


@functools.partial(jit_numpy, static_argnums=0)
def predict(forward, params, prompt):
    return trace.predict(forward(params, prompts.tokens(prompt)))


@functools.partial(jit_numpy, static_argnums=0)
def interactions(forward, params, prompt):  # [n, n]
    """∂²ŷ/∂α_i∂α_j at α = 1, demonstration i entering as α_i e_i."""
    tokens = prompts.tokens(prompt)

    def answer(gates):
        return trace.predict(forward(params, tokens * jnp.append(gates, 1.0)[:, None]))

    return jax.hessian(answer)(jnp.ones(N))


def error(forward, params, prompt):
    """Interactions against what the answer loses when token i is set to 0, n unchanged."""
    hessian, kept = interactions(forward, params, prompt), 1 - np.eye(N)
    without = [prompt.replace(x=prompt.x * k[:, None], y=prompt.y * k) for k in kept]
    whole = predict(forward, params, prompt)
    lost = np.array([whole - predict(forward, params, each) for each in without])
    return np.abs(hessian - np.diag(2 * lost)).max() / np.abs(hessian).max()


@pytest.mark.parametrize("keys", KEYS)
@seeds
def test_demonstrations_of_one_linear_layer_add_up(keys, seed):
    assert error(FORWARDS[keys], *draw(seed)) < 1e-10


def test_control_a_second_layer_and_softmax_let_them_interact():
    assert error(FORWARDS["demonstrations"], *draw(0, num_layers=2)) > 1e-2
    merged, prompt = draw(0)
    identity = np.broadcast_to(np.eye(D + 1), merged.w_kq.shape)
    params = transformer.Params(w_q=merged.w_kq, w_k=identity, w_v=merged.w_pv, w_o=identity)
    config = transformer.Config(D + 1, 1, 2, D + 1)
    assert error(functools.partial(transformer.forward, config=config), params, prompt) > 1e-2
