"""Softmax attention is an implicit update in the feature space of exp(x·z), per query.

Papers: A2, A.2. docs/theory, "Softmax as an implicit update".
"""

import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import transformer

SHAPES = [(5, 3, 1), (8, 2, 3), (1, 1, 1)]  # n, d, H


def draw(seed, shape):
    """Tokens [n+1, e], and w_v, w_k and w_q [e, e] of every head [H, ...]."""
    (n, d, num_heads), rng = shape, np.random.default_rng(seed)
    weights = 0.4 * rng.normal(size=(3, num_heads, d + 1, d + 1))
    return np.clip(rng.normal(size=(n + 1, d + 1)), -2, 2), np.clip(weights, -0.4, 0.4)


def softmax_update(w_v, w_k, w_q, demonstrations, query):
    """One head adds (1/Z) Σ_i k(W_K h_i, W_Q q) W_V h_i to q, Z = Σ_j k(W_K h_j, W_Q q)."""
    kernel = np.exp(demonstrations @ w_k.T @ w_q @ query)
    return kernel @ demonstrations @ w_v.T / kernel.sum()


@jit_numpy
def written(tokens, weights):  # by one softmax layer to every token; key width e, W_O = I
    w_v, w_k, w_q = weights
    num_heads, e, _ = w_v.shape
    identity = np.broadcast_to(np.eye(e), (1, num_heads, e, e))
    params = transformer.Params(w_q[None], w_k[None], w_v[None], identity)
    stream = transformer.forward(params, tokens, transformer.Config(e, 1, num_heads, e)).stream
    return stream[1] - stream[0]


def kernel_form(tokens, weights, query):
    return sum(softmax_update(*head, tokens[:-1], query) for head in zip(*weights, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
@seeds
def test_the_weighted_demonstrations_are_what_softmax_writes_to_any_token(shape, seed):
    tokens, weights = draw(seed, shape)
    found = [kernel_form(tokens, weights, tokens[i]) for i in (0, -1)]
    np.testing.assert_allclose(found, written(tokens, weights)[[0, -1]], rtol=1e-10, atol=1e-10)


def test_control_one_query_is_not_read_with_the_weights_of_another():
    tokens, weights = draw(0, SHAPES[0])
    other = kernel_form(tokens, weights, tokens[0])
    assert np.abs(other - written(tokens, weights)[-1]).max() > 1e-2
