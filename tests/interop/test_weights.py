"""Weights in files, as flax trees and as flax modules are the same numbers."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from lsa_lab.interop import from_linen, from_nnx, from_safetensors, to_linen, to_nnx, to_safetensors
from lsa_lab.interop.weights import read_arrays
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.flax_modules import LinenModel, NNXModel
from lsa_lab.models.transformer import Config

MERGED = linear_attention.init(jax.random.key(0), 2, 3, 2)
EVERYTHING = Config(
    3, 2, (2, 1), 2, width=5, norm=True, mlp_width=4, biases=True, final_norm=True, num_positions=9
)


def same(first, second):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    jax.tree.map(np.testing.assert_array_equal, first, second)
    assert [leaf.dtype for leaf in jax.tree.leaves(first)] == [
        leaf.dtype for leaf in jax.tree.leaves(second)
    ]


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32, jnp.bfloat16])
def test_merged_weights_come_back_in_their_dtype(tmp_path, dtype):
    params = jax.tree.map(lambda leaf: leaf.astype(dtype), MERGED)
    to_safetensors(params, tmp_path / "weights.safetensors", {"task": "n = 20"})
    saved = from_safetensors(tmp_path / "weights.safetensors")
    same(saved.params, params)
    assert (saved.config, saved.metadata) == (None, {"task": "n = 20"})


def test_a_transformer_comes_back_with_its_config_and_runs_on_their_axis(tmp_path):
    params = transformer.init(jax.random.key(0), EVERYTHING)
    runs = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), params)
    for index, each in enumerate((params, runs)):
        path = tmp_path / f"{index}.safetensors"
        to_safetensors(each, path, config=EVERYTHING)
        came, config, metadata = from_safetensors(path)
        same(came, each)
        assert (config, metadata) == (EVERYTHING, {})


def test_trees_of_flax_are_saved_under_the_names_of_their_paths(tmp_path):
    layer = nnx.Sequential(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.Dropout(0.1, rngs=nnx.Rngs(1)))
    dense = linen.Dense(3)
    variables = dense.init(jax.random.key(0), jnp.zeros(2, jnp.float32))
    file = tmp_path / "weights.safetensors"
    for tree, name, kernel in (
        (nnx.state(layer, nnx.Param), "layers.0.kernel", layer.layers[0].kernel[...]),
        (variables, "params.kernel", variables["params"]["kernel"]),
    ):
        to_safetensors(tree, file)
        arrays, _ = read_arrays(file)
        assert sorted(arrays) == [name.replace("kernel", "bias"), name]
        np.testing.assert_array_equal(arrays[name], kernel)
    with pytest.raises(TypeError, match=r"key is a PRNGKeyArray, and arrays are saved: give"):
        to_safetensors(nnx.state(layer), file)


CONFIG = Config(3, 2, 2, 2, width=5, norm=True, mlp_width=4, biases=True, final_norm=True)
TOKENS = jnp.arange(12.0).reshape(4, 3) / 10
MODELS = {
    "linear attention": (
        partial(linear_attention.init, num_layers=2, num_heads=1, d=2, scale=1.0),
        partial(linear_attention.forward, keys="causal", normalise=False),
    ),
    "transformer": (
        partial(transformer.init, config=CONFIG),
        partial(transformer.forward, config=CONFIG),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_linen_module_takes_our_weights_and_gives_them_back(name):
    draw, forward = MODELS[name]
    params, module = draw(jax.random.key(0)), LinenModel(draw, forward)
    variables = to_linen(params)
    gates = jnp.array([[0.5], [1.0]]) * jnp.ones((1, 1 if "attention" in name else 2))
    for mask in (None, gates):
        expected = forward(params, TOKENS, head_mask=mask).stream
        np.testing.assert_allclose(module.apply(variables, TOKENS, mask).stream, expected)
    same(from_linen(variables), params)


@pytest.mark.parametrize("name", MODELS)
def test_an_nnx_module_takes_our_weights_and_gives_them_back(name):
    draw, forward = MODELS[name]
    params, module = draw(jax.random.key(0)), NNXModel(draw, forward, rngs=nnx.Rngs(0))
    expected = forward(params, TOKENS).stream
    assert np.abs(module(TOKENS).stream - expected).max() > 1e-3  # Control: its own weights
    nnx.update(module, to_nnx(params))
    np.testing.assert_allclose(module(TOKENS).stream, expected, rtol=1e-12)
    gates = jnp.zeros((2, 1 if "attention" in name else 2))
    closed = forward(params, TOKENS, head_mask=gates).stream
    np.testing.assert_allclose(module(TOKENS, gates).stream, closed, rtol=1e-12)
    same(from_nnx(nnx.state(module, nnx.Param)), params)
    same(from_nnx(to_nnx(params)), params)


PLAIN = Config(token_width=3, num_layers=2, heads=2, key_width=2)
ROWS = jax.random.normal(jax.random.key(1), (5, 3))


def test_a_module_draws_weights_by_the_law_of_init():
    config = dataclasses.replace(PLAIN, heads=40, key_width=10)
    draw, forward = (partial(f, config=config) for f in (transformer.init, transformer.forward))
    drawn = LinenModel(draw, forward).init(jax.random.key(0), ROWS)["params"]
    expected = draw(jax.random.key(1))
    for name, array in drawn.items():
        np.testing.assert_allclose(array.std(), getattr(expected, name).std(), rtol=0.1)
    assert jnp.abs(drawn["w_q"] - drawn["w_k"]).max() > 0.1
