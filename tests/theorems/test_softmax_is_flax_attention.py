"""A softmax layer without norm and MLP is a residual around flax's multi-head attention.

Flax divides scores by √k; here that factor is part of W_Q. Papers: A2, Eq. 1. docs/theory, "Softmax
attention".
"""

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
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
