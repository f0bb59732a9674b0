"""A softmax layer without norm and MLP is a residual around flax's multi-head attention.

Flax divides scores by √k; here that factor is part of W_Q. Papers: A2, Eq. 1. docs/theory, "Softmax
attention".
"""

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings

from draws import jit_numpy, seeds
from lsa_lab.models import transformer

T, E, K, H = 6, 4, 3, 2
forward = jit_numpy(transformer.forward)
READABLE = {
    ("merged", "demonstrations"): np.repeat(np.arange(T)[None] < T - 1, T, 0),
    ("merged", "all"): np.ones((T, T), bool),
    ("merged", "causal"): np.tril(np.ones((T, T), bool)) & (np.arange(T)[None] < T - 1),
    ("interleaved", "causal"): np.tril(np.ones((T - 1, T - 1), bool)),
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
    kernels["out"], tokens = rng.normal(size=(2, H, K, E)), rng.normal(size=(len(readable), E))
    w_q, w_k, w_v = (kernels[name].transpose(0, 2, 3, 1) for name in ("query", "key", "value"))
    w_o = kernels["out"].transpose(0, 1, 3, 2)
    params = transformer.Params(w_q=scale * w_q, w_k=w_k, w_v=w_v, w_o=w_o)
    config = transformer.Config(E, 2, H, K, keys=keys, layout=layout)
    return np.abs(
        forward(params, tokens, config).stream - flax_stream(kernels, tokens, readable)
    ).max()


@pytest.mark.parametrize(("layout", "keys"), READABLE)
@seeds
def test_a_softmax_layer_is_flax_attention(layout, keys, seed):
    assert error(seed, layout, keys, READABLE[layout, keys]) < 1e-10


@seeds
@settings(max_examples=5)
def test_control_the_score_factor_and_the_mask_matter(seed):
    case = seed, "merged", "demonstrations"
    assert error(*case, READABLE["merged", "demonstrations"], scale=1.0) > 1e-3
    assert error(*case, READABLE["merged", "all"]) > 1e-3
