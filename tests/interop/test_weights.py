"""Weights in files, as flax trees and as flax modules are the same numbers."""

from functools import partial

import chex
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

EVERYTHING = Config(
    3, 2, (2, 1), 2, width=5, norm=True, mlp_width=4, biases=True, final_norm=True, num_positions=9
)
TOKENS = np.arange(12.0).reshape(4, 3) / 10
GATES = np.array([[0.5, 0.2], [1.0, 1.0]])
MODELS = {
    "linear attention": (
        jax.jit(partial(linear_attention.init, num_layers=2, num_heads=2, d=2, scale=1.0)),
        partial(linear_attention.forward, keys="causal", normalise=False),
    ),
    "transformer": (
        jax.jit(partial(transformer.init, config=EVERYTHING)),
        partial(transformer.forward, config=EVERYTHING),
    ),
}
PARAMS = {name: draw(jax.random.key(0)) for name, (draw, _) in MODELS.items()}


def same(first, second):
    chex.assert_trees_all_equal_shapes_and_dtypes(first, second)
    jax.tree.map(np.testing.assert_array_equal, first, second)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, jnp.bfloat16])
def test_merged_weights_come_back_in_their_dtype(tmp_path, dtype):
    params = jax.tree.map(lambda leaf: leaf.astype(dtype), PARAMS["linear attention"])
    to_safetensors(params, tmp_path / "weights.safetensors", {"task": "n = 20"})
    saved = from_safetensors(tmp_path / "weights.safetensors")
    same(saved.params, params)
    assert (saved.config, saved.metadata) == (None, {"task": "n = 20"})


def test_a_transformer_comes_back_with_its_config_and_runs_on_their_axis(tmp_path):
    params = PARAMS["transformer"]
    for each in (params, jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), params)):
        to_safetensors(each, tmp_path / "weights.safetensors", config=EVERYTHING)
        came, config, metadata = from_safetensors(tmp_path / "weights.safetensors")
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


@pytest.mark.parametrize("name", MODELS)
def test_modules_of_flax_take_our_weights_and_give_them_back(name):
    (draw, forward), params = MODELS[name], PARAMS[name]
    expected = jax.jit(forward)(params, TOKENS, head_mask=GATES).stream
    variables, module = to_linen(params), LinenModel(draw, forward)
    came = jax.jit(module.apply)(variables, TOKENS, GATES).stream
    np.testing.assert_allclose(came, expected, rtol=1e-12)
    same(from_linen(variables), params)
    module = NNXModel(draw, forward, rngs=nnx.Rngs(1))
    run = nnx.jit(lambda module, gates: module(TOKENS, gates).stream)
    assert np.abs(run(module, GATES) - expected).max() > 1e-3  # Control: its own weights
    nnx.update(module, to_nnx(params))
    np.testing.assert_allclose(run(module, GATES), expected, rtol=1e-12)
    same(from_nnx(nnx.state(module, nnx.Param)), params)
    assert np.abs(run(module, np.ones_like(GATES)) - expected).max() > 1e-3  # gates are heard


def test_a_module_draws_weights_by_the_law_of_init():
    config = Config(token_width=3, num_layers=2, heads=40, key_width=10)
    draw, forward = (partial(f, config=config) for f in (transformer.init, transformer.forward))
    drawn = jax.jit(LinenModel(draw, forward).init)(jax.random.key(0), TOKENS)["params"]
    expected = jax.jit(draw)(jax.random.key(1))
    for name, array in drawn.items():
        np.testing.assert_allclose(array.std(), getattr(expected, name).std(), rtol=0.1)
    assert np.abs(drawn["w_q"] - drawn["w_k"]).max() > 0.1
