"""Softmax attention is an implicit update in the feature space of exp(x·z), per query.

exp(k·q) = e^{|k|²/2} e^{-|k-q|²/2} e^{|q|²/2}. Papers: A2, A.2. docs/theory, "Softmax as an
implicit update".
"""

import numpy as np
import pytest
from scipy.special import factorial

from draws import jit_numpy, seeds
from lsa_lab.models import transformer

SHAPES = [(5, 3, 1), (8, 2, 3)]  # n, d, H
DEGREE = 60  # of exp's series: |x z| stays below 10.3, the rest below 1e-20


def draw(seed, shape):
    """Tokens [n+1, e], and w_v, w_k and w_q [e, e] of every head [H, ...]."""
    (n, d, num_heads), rng = shape, np.random.default_rng(seed)
    weights = 0.4 * rng.normal(size=(3, num_heads, d + 1, d + 1))
    return np.clip(rng.normal(size=(n + 1, d + 1)), -2, 2), np.clip(weights, -0.4, 0.4)


def softmax_update(w_v, w_k, w_q, demonstrations, query):  # values, weights, Z(q), of every head
    """A head takes q to q + Σ_i weights_i values_i = q + ΔW φ(W_Q q), Z = Σ_j k(W_K h_j, q)."""
    kernel = np.exp(demonstrations @ w_k.mT @ (w_q @ query)[..., None])[..., 0]
    return demonstrations @ w_v.mT, kernel / kernel.sum(-1, keepdims=True), kernel.sum(-1)


@jit_numpy
def written(tokens, weights):  # by one softmax layer to every token; key width e, W_O = I
    w_v, w_k, w_q = weights
    num_heads, e, _ = w_v.shape
    identity = np.broadcast_to(np.eye(e), (1, num_heads, e, e))
    params = transformer.Params(w_q[None], w_k[None], w_v[None], identity)
    stream = transformer.forward(params, tokens, transformer.Config(e, 1, num_heads, e)).stream
    return stream[1] - stream[0]


@pytest.mark.parametrize("shape", SHAPES)
@seeds
def test_the_weighted_demonstrations_are_what_softmax_writes_to_any_token(shape, seed):
    tokens, weights = draw(seed, shape)
    reads = [softmax_update(*weights, tokens[:-1], row) for row in tokens]
    updates = [np.einsum("hn,hne->e", shares, values) for values, shares, _ in reads]
    expected = written(tokens, weights)
    np.testing.assert_allclose(updates, expected, rtol=1e-10, atol=1e-10)
    # Control: one query is not read with the weights of another.
    assert np.abs(updates[0] - expected[-1]).max() > 1e-3


def features(x):  # [...] -> [..., DEGREE], φ_m(x) = x^m / √m!, so that φ(x)·φ(z) = exp(xz)
    return np.asarray(x)[..., None] ** np.arange(DEGREE) / factorial(np.arange(DEGREE)) ** 0.5


@seeds
def test_the_kernel_is_gaussian_but_for_sizes_and_an_update_acts_on_features_of_the_query(seed):
    """ΔW = (1/Z) Σ W_V h_i ⊗ φ(W_K h_i), Z = Σ φ(W_K h_j)·φ(W_Q q), written out for k = 1."""
    tokens, (w_v, w_k, w_q) = draw(seed, SHAPES[0])
    demonstrations, query = tokens[:-1], tokens[-1]
    sizes = np.exp((demonstrations**2).sum(1) / 2), np.exp(query @ query / 2)
    gaussian = np.exp(-((demonstrations - query) ** 2).sum(1) / 2)
    _, weights, total = softmax_update(*3 * [np.eye(len(query))], demonstrations, query)
    np.testing.assert_allclose(weights * total, sizes[0] * gaussian * sizes[1], rtol=1e-10)
    inputs = w_v[0], w_k[0][:1], w_q[0][:1], demonstrations, query
    values, weights, normaliser = softmax_update(*inputs)
    keys, query_features = features(demonstrations @ w_k[0][0]), features(w_q[0][0] @ query)
    np.testing.assert_allclose((keys @ query_features).sum(), normaliser, rtol=1e-10)
    stated = (demonstrations @ w_v[0].T).T @ keys @ query_features / normaliser
    np.testing.assert_allclose(weights @ values, stated, rtol=1e-10, atol=1e-12)
