"""Softmax attention is an implicit update in the feature space of exp(x·z), per query.

exp(k·q) = e^{|k|²/2} e^{-|k-q|²/2} e^{|q|²/2}. Papers: A2, A.2. docs/theory, "Softmax as an
implicit update".
"""

import math

import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import transformer

SHAPES = [(5, 3, 1), (8, 2, 3), (1, 1, 1)]  # n, d, H
DEGREE = 60  # of exp's series: |x z| stays below 10.3, the rest below 1e-20


def draw(seed, shape):
    """Tokens [n+1, e], and w_v, w_k and w_q [e, e] of every head [H, ...]."""
    (n, d, num_heads), rng = shape, np.random.default_rng(seed)
    weights = 0.4 * rng.normal(size=(3, num_heads, d + 1, d + 1))
    return np.clip(rng.normal(size=(n + 1, d + 1)), -2, 2), np.clip(weights, -0.4, 0.4)


def softmax_update(w_v, w_k, w_q, demonstrations, query):  # values, weights, log Z(q)
    """One head takes q to q + Σ_i weights_i values_i = q + ΔW φ(W_Q q), Z = Σ_j k(W_K h_j, q)."""
    log_kernel = demonstrations @ w_k.T @ w_q @ query
    log_normaliser = np.log(np.exp(log_kernel).sum())
    return demonstrations @ w_v.T, np.exp(log_kernel - log_normaliser), log_normaliser


@jit_numpy
def written(tokens, weights):  # by one softmax layer to every token; key width e, W_O = I
    w_v, w_k, w_q = weights
    num_heads, e, _ = w_v.shape
    identity = np.broadcast_to(np.eye(e), (1, num_heads, e, e))
    params = transformer.Params(w_q[None], w_k[None], w_v[None], identity)
    stream = transformer.forward(params, tokens, transformer.Config(e, 1, num_heads, e)).stream
    return stream[1] - stream[0]


def kernel_form(tokens, weights, query):
    updates = [softmax_update(*head, tokens[:-1], query) for head in zip(*weights, strict=True)]
    return sum(shares @ values for values, shares, _ in updates)


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


@seeds
def test_the_kernel_is_gaussian_but_for_the_sizes_of_key_and_query(seed):
    keys, (query,) = np.split(draw(seed, SHAPES[1])[0], [-1])
    sizes = np.exp((keys**2).sum(1) / 2), np.exp(query @ query / 2)
    gaussian = np.exp(-((keys - query) ** 2).sum(1) / 2)
    np.testing.assert_allclose(sizes[0] * gaussian * sizes[1], np.exp(keys @ query), rtol=1e-10)
    _, weights, _ = softmax_update(*3 * [np.eye(len(query))], keys, query)
    np.testing.assert_allclose(weights, sizes[0] * gaussian / (sizes[0] @ gaussian), rtol=1e-10)


def features(x):  # [...] -> [..., DEGREE], φ_m(x) = x^m / √m!, so that φ(x)·φ(z) = exp(xz)
    scale = [math.sqrt(math.factorial(m)) for m in range(DEGREE)]
    return np.asarray(x)[..., None] ** np.arange(DEGREE) / scale


@seeds
def test_an_implicit_update_acts_on_features_of_the_query(seed):
    """ΔW = (1/Z) Σ W_V h_i ⊗ φ(W_K h_i), Z = Σ φ(W_K h_j)·φ(W_Q q), written out for k = 1."""
    tokens, (w_v, w_k, w_q) = draw(seed, SHAPES[0])
    demonstrations, query = tokens[:-1], tokens[-1]
    inputs = w_v[0], w_k[0][:1], w_q[0][:1], demonstrations, query
    values, weights, log_normaliser = softmax_update(*inputs)
    keys, query_features = features(demonstrations @ w_k[0][0]), features(w_q[0][0] @ query)
    normaliser = (keys @ query_features).sum()
    np.testing.assert_allclose(np.exp(log_normaliser), normaliser, rtol=1e-10)
    stated = (demonstrations @ w_v[0].T).T @ keys @ query_features / normaliser
    np.testing.assert_allclose(weights @ values, stated, rtol=1e-10, atol=1e-12)
