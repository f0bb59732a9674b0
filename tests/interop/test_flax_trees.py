"""Parameter trees of Flax: round trips, and modules that predict as the functions do."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from lsa_lab.interop import from_linen, from_nnx, to_linen, to_nnx
from lsa_lab.models import linear_attention, linen, transformer
from lsa_lab.models.transformer import Config

CONFIG = Config(3, 2, 2, 2, width=5, norm=True, mlp_width=4, biases=True, final_norm=True)
TOKENS = jnp.arange(12.0).reshape(4, 3) / 10
MODELS = {
    "linear attention": (
        partial(linear_attention.init, num_layers=2, num_heads=1, d=2, scale=1.0),
        linen.LinearAttention(2, 1),
        linear_attention.forward,
    ),
    "transformer": (
        partial(transformer.init, config=CONFIG),
        linen.Transformer(CONFIG),
        partial(transformer.forward, config=CONFIG),
    ),
}


def case(name):
    """Params, the module, and what the function leaves of the stream."""
    init, module, forward = MODELS[name]
    params = init(jax.random.key(0))
    return params, module, forward(params, TOKENS).stream


def same(first, second):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    jax.tree.map(np.testing.assert_array_equal, first, second)


@pytest.mark.parametrize("name", MODELS)
def test_a_linen_module_takes_our_weights_and_gives_them_back(name):
    params, module, expected = case(name)
    variables = to_linen(params)
    np.testing.assert_allclose(module.apply(variables, TOKENS).stream, expected, rtol=1e-12)
    same(from_linen(variables), params)


@pytest.mark.parametrize("name", MODELS)
def test_an_nnx_module_takes_our_weights_and_gives_them_back(name):
    params, module, expected = case(name)
    bridged = nnx.bridge.ToNNX(module, rngs=nnx.Rngs(0)).lazy_init(TOKENS)
    assert np.abs(bridged(TOKENS).stream - expected).max() > 1e-3  # Control: its own weights
    nnx.update(bridged, to_nnx(params))
    np.testing.assert_allclose(bridged(TOKENS).stream, expected, rtol=1e-12)
    same(from_nnx(nnx.state(bridged, nnx.Param)), params)
    same(from_nnx(to_nnx(params)), params)
