"""The flax modules are the functional models under another name."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.linen import LinearAttention, Transformer
from lsa_lab.models.transformer import Config

PLAIN = Config(token_width=3, num_layers=2, heads=2, key_width=2)
RICH = dataclasses.replace(PLAIN, heads=(2, 1), width=5, norm=True, mlp_width=4)
TOKENS = jax.random.normal(jax.random.key(1), (5, 3))
GATES = jnp.array([[1.0, 0.0], [0.5, 1.0]])


def same(first, second):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    jax.tree.map(np.testing.assert_array_equal, first, second)


@pytest.mark.parametrize(("keys", "normalise"), [("all", True), ("causal", False)])
def test_the_linear_attention_module_is_the_function(keys, normalise):
    module = LinearAttention(2, 2, keys=keys, normalise=normalise)
    variables = module.init(jax.random.key(0), TOKENS)
    params = linear_attention.Params(**variables["params"])
    expected = linear_attention.forward(
        params, TOKENS, keys=keys, normalise=normalise, head_mask=GATES
    )
    same(module.apply(variables, TOKENS, GATES), expected)


def test_the_transformer_module_is_the_function():
    module = Transformer(RICH)
    variables = module.init(jax.random.key(0), TOKENS)
    params = transformer.Params(**variables["params"])
    same(module.apply(variables, TOKENS), transformer.forward(params, TOKENS, RICH))
    gated = transformer.forward(params, TOKENS, RICH, GATES)
    same(module.apply(variables, TOKENS, GATES), gated)


def test_a_module_draws_weights_by_the_law_of_init():
    config = dataclasses.replace(PLAIN, heads=40, key_width=10)
    drawn = Transformer(config).init(jax.random.key(0), TOKENS)["params"]
    expected = transformer.init(jax.random.key(1), config)
    for name, array in drawn.items():
        np.testing.assert_allclose(array.std(), getattr(expected, name).std(), rtol=0.1)
    assert jnp.abs(drawn["w_q"] - drawn["w_k"]).max() > 0.1
