"""A softmax layer without norm and MLP is a residual around flax's multi-head attention.

A2, Eq. 1; docs/theory, "Softmax attention". Sides: the transformer's stream; residual layers of
flax's module. Flax divides scores by √k; here that factor is part of W_Q. Hypotheses: softmax
kernel, no bias.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings

from draws import jit_numpy, seeds
from lsa_lab.models import transformer
from lsa_lab.models.transformer import Config

T, E, K, H = 6, 4, 3, 2
forward = jit_numpy(transformer.forward)
READABLE = {
    ("merged", "demonstrations"): np.repeat(np.arange(T)[None] < T - 1, T, 0),
    ("merged", "all"): np.ones((T, T), bool),
    ("merged", "causal"): np.tril(np.ones((T, T), bool)) & (np.arange(T)[None] < T - 1),
    ("interleaved", "causal"): np.tril(np.ones((T - 1, T - 1), bool)),
}


@jit_numpy
def flax_stream(variables, tokens, readable):  # [L, ...], [T, e], [T, T] -> [L+1, T, e]
    """Residual layers of nn.MultiHeadDotProductAttention."""
    module = nn.MultiHeadDotProductAttention(H, qkv_features=H * K, out_features=E, use_bias=False)
    stream = [tokens]
    for layer in range(2):
        weights = jax.tree.map(lambda w, layer=layer: w[layer], variables)
        stream.append(stream[-1] + module.apply(weights, stream[-1], mask=readable[None]))
    return jnp.stack(stream)


def draw(seed):
    """Weights as flax names and shapes them [L, D, H, k], and tokens."""
    rng = np.random.default_rng(seed)
    kernels = {
        name: {"kernel": rng.normal(size=(2, E, H, K))} for name in ("query", "key", "value")
    }
    kernels["out"] = {"kernel": rng.normal(size=(2, H, K, E))}
    return {"params": kernels}, rng.normal(size=(T, E))


def discrepancy(seed, layout, keys, readable, scale=K**-0.5):
    """The largest difference between the two streams, after both layers."""
    variables, tokens = draw(seed)
    tokens = tokens[: len(readable)]
    heads_first = {
        name: leaf["kernel"].transpose(0, 2, 3, 1) for name, leaf in variables["params"].items()
    }
    params = transformer.Params(
        w_q=scale * heads_first["query"],
        w_k=heads_first["key"],
        w_v=heads_first["value"],
        w_o=variables["params"]["out"]["kernel"].transpose(0, 1, 3, 2),
    )
    config = Config(E, num_layers=2, heads=H, key_width=K, keys=keys, layout=layout)
    ours = forward(params, tokens, config).stream
    return np.abs(ours - flax_stream(variables, tokens, readable)).max()


@pytest.mark.parametrize(("layout", "keys"), READABLE)
@seeds
def test_a_softmax_layer_is_flax_attention(layout, keys, seed):
    assert discrepancy(seed, layout, keys, READABLE[layout, keys]) < 1e-10


@seeds
@settings(max_examples=5)
def test_control_the_score_factor_and_the_mask_matter(seed):
    merged = READABLE["merged", "demonstrations"]
    assert discrepancy(seed, "merged", "demonstrations", merged, scale=1.0) > 1e-3
    assert discrepancy(seed, "merged", "demonstrations", READABLE["merged", "all"]) > 1e-3
