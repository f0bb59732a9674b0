"""A softmax layer without norm and MLP is a residual around flax's multi-head attention, and an
implicit update in the feature space of exp(x·z), per query. With one visible key, which it weighs
1, all demonstrations have the same flow, at any depth.

Flax divides scores by √k; here that factor is part of W_Q. exp(k·q) = e^{|k|²/2} e^{-|k-q|²/2}
e^{|q|²/2}. ∂q_L/∂d = Π_l (I + V_l) - I with V_l = Σ_h W_O W_V holds no demonstration and no query:
the ratio of two flows is 1 in every layer. Papers: A2, Eq. 1, A.2. docs/theory, "Softmax
attention", "Softmax as an implicit update", "Softmax reads one key".
"""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import factorial

from draws import draw_transformer, jit_numpy, seeds
from lsa_lab.models import transformer

T, E, K, H = 5, 4, 3, 2
forward = jit_numpy(transformer.forward)
READABLE = {
    ("merged", "demonstrations"): np.repeat(np.arange(T)[None] < T - 1, T, 0),
    ("merged", "all"): np.ones((T, T), bool),
    ("merged", "causal"): np.tril(np.ones((T, T), bool)) & (np.arange(T)[None] < T - 1),
    ("interleaved", "causal"): np.tril(np.ones((T, T), bool)),
}


@jit_numpy
def flax_stream(kernels, tokens, readable):  # [L, ...], [T, e], [T, T] -> [L+1, T, e]
    module = nn.MultiHeadDotProductAttention(H, qkv_features=H * K, out_features=E, use_bias=False)
    stream = [tokens]
    for layer in range(2):
        weights = {"params": {name: {"kernel": leaf[layer]} for name, leaf in kernels.items()}}
        stream.append(stream[-1] + module.apply(weights, stream[-1], mask=readable[None]))
    return jnp.stack(stream)


def error(seed, layout, keys, readable, scale=K**-0.5):  # of both layers
    rng = np.random.default_rng(seed)
    kernels = {name: rng.normal(size=(2, E, H, K)) for name in ("query", "key", "value")}
    kernels["out"], tokens = rng.normal(size=(2, H, K, E)), rng.normal(size=(T, E))
    w_q, w_k, w_v = (kernels[name].transpose(0, 2, 3, 1) for name in ("query", "key", "value"))
    params = transformer.Params(scale * w_q, w_k, w_v, kernels["out"].transpose(0, 1, 3, 2))
    config = transformer.Config(E, 2, H, K, keys=keys, layout=layout)
    stream = forward(params, tokens, config).stream
    return np.abs(stream - flax_stream(kernels, tokens, readable)).max()


@pytest.mark.parametrize(("layout", "keys"), READABLE)
@seeds
def test_a_softmax_layer_is_flax_attention(layout, keys, seed):
    assert error(seed, layout, keys, READABLE[layout, keys]) < 1e-10
    # Control: the factor of the scores and the mask matter.
    assert error(0, layout, keys, READABLE[layout, keys], scale=1.0) > 1e-3
    assert error(0, layout, keys, np.eye(T, dtype=bool)) > 1e-3


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


L = 3


@partial(jit_numpy, static_argnames="config")
def network_flow(params, tokens, config):  # [L, e, e], ∂q_l/∂d of the first token after every layer
    def path(d):
        rows = jnp.concatenate([d[None], tokens[1:]])
        return transformer.forward(params, rows, config).stream[1:, -1]

    return jax.jacfwd(path)(tokens[0])


def errors(seed, num_tokens=2, **choices):
    """Flows of two demonstrations against the product of layers."""
    rng, config = np.random.default_rng(seed), transformer.Config(E, L, H, E, **choices)
    params, tokens = (
        draw_transformer(rng, L, H, E, E, 0.5),
        rng.normal(size=(num_tokens, E)),
    )
    product, stated = np.eye(E), []
    for layer in (params.w_o @ params.w_v).sum(1):
        product = product + layer @ product
        stated.append(product - np.eye(E))
    other = np.vstack([rng.normal(size=E), tokens[1:]])
    flows = [network_flow(params, rows, config) for rows in (tokens, other)]
    return [np.abs(flow - stated).max() / (1 + np.abs(stated).max()) for flow in flows]


@seeds
def test_the_flow_depends_on_neither_the_demonstration_nor_the_query(seed):
    assert max(errors(seed)) < 1e-10
    # Control: a second key or a linear score sees the demonstration.
    for choices in (dict(keys="all"), dict(num_tokens=3), dict(kernel="linear")):
        assert min(errors(0, **choices)) > 1e-2
