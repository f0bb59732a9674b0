"""Two neighbours of a delta rule may change places where β₁β₂ (x₁·x₂)(x₁r₂ - x₂r₁) is 0.

No gate, and steps of the token alone. docs/theory, "The order of two demonstrations".
"""

import numpy as np
import pytest

from draws import jit_numpy, seeds
from population import token_states

N, D, V = 5, 3, 2  # labels are vectors here; tokens are [x, raw step, y]
STATES = {kind: jit_numpy(token_states(kind, D, V)) for kind in ("lms", "delta")}
FADING = jit_numpy(token_states("gated_delta", D, V, gate=0.8))
kinds = pytest.mark.parametrize("kind", STATES)  # keys as they are, and of length 1


def draw(seed):
    return np.random.default_rng(seed).normal(size=(N + 1, D + 1 + V))  # the query comes last


def move(states, tokens):  # [D, V]: by the order of the last two demonstrations
    return states(tokens)[-1] - states(tokens[[*range(N - 2), N - 1, N - 2, N]])[-1]


def compute_product(kind, tokens, before):
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
    stated, size = compute_product(kind, tokens, path[N - 3]), 1 + np.abs(path).max()
    np.testing.assert_allclose(move(states, tokens), stated, atol=1e-10 * size)
    if seed == 0 and kind == "delta":  # Control: the labels in place of residuals, and a gate
        labels = compute_product(kind, tokens, np.zeros((D, V)))
        assert np.abs(move(states, tokens) - labels).max() > 1e-2
        with_gate = compute_product(kind, tokens, FADING(tokens)[N - 3])
        assert np.abs(move(FADING, tokens) - with_gate).max() > 1e-2


@kinds
def test_neighbours_commute_where_it_vanishes_and_not_elsewhere(kind):
    states, tokens = STATES[kind], draw(0)
    (first, last), keys = tokens[N - 2 : N], tokens[N - 2 : N, :D]
    keys = keys / np.linalg.norm(keys, axis=1, keepdims=True) if kind == "delta" else keys
    orthogonal, fitted, parallel, still = (tokens.copy() for _ in range(4))
    orthogonal[N - 1, :D] -= first[:D] * (first[:D] @ last[:D]) / (first[:D] @ first[:D])
    fitted[N - 2 : N, D + 1 :] = keys @ states(tokens)[N - 3]
    parallel[N - 1, :D], parallel[N - 1, D + 1 :] = -first[:D], -first[D + 1 :]
    still[N - 1, D] = -800.0  # no step
    for case in (orthogonal, fitted, parallel, still):
        np.testing.assert_allclose(move(states, case), 0, atol=1e-12)
    assert np.abs(move(states, tokens)).max() > 1e-2
