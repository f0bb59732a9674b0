"""A layer that trains the last layer of an inner model on its keys is linear attention.

The features of the inner model are fixed. docs/theory, "Inner training is attention".
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, relative_error, seeds
from population import token_states

N, K, V, WIDTH, STEP = 6, 3, 2, 4, 0.4


def loss(inner, k, v):  # no square: the root of 1 + |error|²
    w, u = inner
    return jnp.sqrt(1 + ((w @ jnp.tanh(u @ k) - v) ** 2).sum())


@jit_numpy
def read(w, u, keys, values, query, together, features_too=0.0):
    """After a step on every token, with all slopes at the first inner model if ``together``."""
    inner = first = (w, u)
    for k, v in zip(keys, values, strict=True):
        at = [jnp.where(together, a, b) for a, b in zip(first, inner, strict=True)]
        step = jax.grad(loss)(tuple(at), k, v)
        rates = STEP, STEP * features_too
        inner = tuple(a - rate * b for a, rate, b in zip(inner, rates, step, strict=True))
    return inner[0] @ jnp.tanh(inner[1] @ query)


def attention(w, u, keys, values, query, together):
    """W₀φ(q) + Σ_i ṽ_i φ(k_i)·φ(q), ṽ_i of the token alone, or of all up to it."""
    features, of_query = np.tanh(keys @ u.T), np.tanh(u @ query)
    written = np.zeros((N, V))
    for i in range(N):
        before = w @ features[i] + (0 if together else written[:i].T @ (features[:i] @ features[i]))
        error = before - values[i]
        written[i] = -STEP * error / np.sqrt(1 + error @ error)  # the slope of the loss
    return w @ of_query + written.T @ (features @ of_query)


@seeds
def test_the_read_is_a_sum_over_keys_without_order_if_steps_are_together(seed):
    rng = np.random.default_rng(seed)
    shapes = (V, WIDTH), (WIDTH, K), (N, K), (N, V), (K,)
    case = w, u, keys, values, query = [rng.normal(size=shape) for shape in shapes]
    turned = w, u, keys[::-1], values[::-1], query
    for together in (True, False):
        found, stated = read(*case, together), attention(*case, together)
        assert relative_error(found, stated) < 1e-10
        change = relative_error(read(*turned, together), found)
        if together:
            assert change < 1e-12
        if seed == 0:  # Control: steps one by one depend on it, trained features are no such sum
            assert together or change > 1e-2
            assert relative_error(read(*case, together, 1.0), stated) > 1e-2


@pytest.mark.parametrize("inner", [1, 3])
def test_the_ttt_layer_holds_keys_times_the_residuals_of_all_its_inner_steps(inner):
    tokens, written = np.random.default_rng(0).normal(size=(N + 1, K + 1 + V)) / 2, np.zeros((N, V))
    for i, row in enumerate(tokens[:N]):  # the query writes nothing
        for _ in range(inner):
            residual = row[K + 1 :] - written[: i + 1].T @ (tokens[: i + 1, :K] @ row[:K])
            written[i] += row[K] * residual
    found = jit_numpy(token_states("ttt", K, V, inner=inner))(tokens)[-1]
    np.testing.assert_allclose(found, tokens[:N, :K].T @ written, rtol=1e-10, atol=1e-12)
