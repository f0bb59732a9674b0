"""Two neighbours of a delta rule may change places where β₁β₂ (x₁·x₂)(x₁r₂ - x₂r₁) is 0.

No gate, and steps of the token alone. docs/theory, "The order of two demonstrations".
"""

import numpy as np
import pytest

from draws import jit_numpy, seeds
from population import token_states

N, D, V = 5, 3, 2  # labels are vectors here; tokens are [x, raw step, y]
KINDS = ("lms", "delta")  # keys as they are, and of length 1
kinds = pytest.mark.parametrize("kind", KINDS)
STATES = {kind: jit_numpy(token_states(kind, D, V)) for kind in KINDS}
FADING = jit_numpy(token_states("gated_delta", D, V, gate=0.8))


def draw(seed):
    return np.random.default_rng(seed).normal(size=(N + 1, D + 1 + V))  # the query comes last


def move(states, tokens):  # [D, V]: by the order of the last two demonstrations
    swapped = tokens[[*range(N - 2), N - 1, N - 2, N]]
    return states(tokens)[-1] - states(swapped)[-1]


def product(kind, tokens, before):
    """β₁β₂ (k₁·k₂)(k₁r₂ᵀ - k₂r₁ᵀ), r of both labels beside the state before both."""
    k, raw, v = np.split(tokens[N - 2 : N], [D, D + 1], axis=1)
    k = k / np.linalg.norm(k, axis=1, keepdims=True) if kind == "delta" else k
    beta = 2 / (1 + np.exp(-raw)) if kind == "delta" else np.log1p(np.exp(raw))
    r = v - k @ before
    return beta.prod() * (k[0] @ k[1]) * (np.outer(k[0], r[1]) - np.outer(k[1], r[0]))


@kinds
@seeds
def test_their_order_moves_the_state_by_the_product(kind, seed):
    tokens, states = draw(seed), STATES[kind]
    path = states(tokens)
    stated, size = product(kind, tokens, path[N - 3]), 1 + np.abs(path).max()
    np.testing.assert_allclose(move(states, tokens), stated, atol=1e-10 * size)


@kinds
@pytest.mark.parametrize("case", ["orthogonal", "fitted", "one direction", "no step"])
def test_neighbours_commute_where_it_vanishes(kind, case):
    tokens, states = draw(0), STATES[kind]
    first, last = tokens[N - 2], tokens[N - 1]
    if case == "orthogonal":
        last[:D] -= first[:D] * (first[:D] @ last[:D]) / (first[:D] @ first[:D])
    if case == "fitted":
        keys = tokens[N - 2 : N, :D]
        keys = keys / np.linalg.norm(keys, axis=1, keepdims=True) if kind == "delta" else keys
        tokens[N - 2 : N, D + 1 :] = keys @ states(tokens)[N - 3]
    if case == "one direction":  # and labels that ask the same of the state
        last[:D], last[D + 1 :] = -first[:D], -first[D + 1 :]
    if case == "no step":
        last[D] = -800.0
    np.testing.assert_allclose(move(states, tokens), 0, atol=1e-12)
    assert np.abs(move(states, draw(0))).max() > 1e-2


def test_control_with_a_gate_or_the_labels_in_place_of_residuals_it_is_another():
    tokens = draw(0)
    with_gate = product("delta", tokens, FADING(tokens)[N - 3])
    assert np.abs(move(FADING, tokens) - with_gate).max() > 1e-2
    labels = product("delta", tokens, np.zeros((D, V)))
    assert np.abs(move(STATES["delta"], tokens) - labels).max() > 1e-2
