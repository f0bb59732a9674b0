"""What a softmax layer computes determines its heads, if no two have the same W_KᵀW_Q.

Σ_h P_h Σ_i softmax_i(e_i·K_h q) e_i = 0 for every prompt and distinct K_h only if all P_h are zero,
so that two layers differ if a head does. docs/theory, "Softmax heads are identifiable".
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import transformer

E = 3


@functools.partial(jit_numpy, static_argnames=("keys", "kernel"))
def reads(key_query, tokens, keys, kernel):  # [prompts, H, e], of the query
    num_heads = len(key_query)
    config = transformer.Config(E, 1, num_heads, E, kernel=kernel, keys=keys)
    same = jnp.broadcast_to(jnp.eye(E), (1, num_heads, E, E))
    params = transformer.Params(w_q=key_query[None], w_k=same, w_v=same, w_o=same)
    return jax.vmap(lambda each: transformer.forward(params, each, config).heads[0, :, -1])(tokens)


def rank(key_query, n, keys="demonstrations", kernel="softmax"):
    """How many of the H e functions Σ_i a_i e_i of a prompt, the query's, are independent."""
    tokens = 1.5 * np.random.default_rng(0).normal(size=(400, n + 1, E))
    rows = reads(np.stack(key_query), tokens, keys, kernel)
    return np.linalg.matrix_rank(rows.reshape(len(rows), -1), rtol=1e-9)


def draw(seed, count):  # [count, e, e]
    return np.random.default_rng(seed).normal(size=(count, E, E))


@pytest.mark.parametrize("keys", ["demonstrations", "all", "causal"])
@seeds
def test_heads_of_distinct_keys_opposite_ones_and_mixtures_are_independent(keys, seed):
    first, second, third = draw(seed, 3)  # two layers, side by side: none does what the other does
    heads = [first, -first, 0 * first, second, first + second, third]
    assert rank(heads, 3, keys) == 6 * E
    # Control: two demonstrations, where heads K and -K average, equal heads and linear ones.
    if seed == 0 and keys == "demonstrations":
        assert rank([first, -first, 0 * first], 2) == 2 * E
        assert rank([first, -first, 0 * first], 2, "all") == 3 * E  # the query is a third key
        assert rank([first, second, second], 3) == 2 * E
        assert rank([first, second, first + second], 3, kernel="linear") == 2 * E
