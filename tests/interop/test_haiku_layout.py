"""The layout of von Oswald et al.: their forward in plain numpy, round trips, refusals."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.interop import to_von_oswald, von_oswald
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.models.trace import layer_predictions

E, K, N = 4, 3, 5
ROWS = np.random.default_rng(0).normal(size=(N + 1, E))
ROWS[-1, -1] = 0


def dictionary(num_heads, modules):
    """Random weights under the names that Haiku gives them."""
    rng, wide, weights = np.random.default_rng(1), num_heads * K, {}
    for module in modules:
        for part in ("query", "key", "value"):
            weights[f"transformer/{module}/{part}"] = {"w": 0.5 * rng.normal(size=(E, wide))}
        weights[f"transformer/{module}/linear"] = {"w": 0.5 * rng.normal(size=(wide, E))}
    return weights


def theirs(weights, modules, num_heads, rows, name="transformer", include_query=False):
    """Their predictions after each layer: x @ w, heads side by side, no softmax and no mean."""
    z, predictions = rows.copy(), []
    for module in modules:
        w = {
            part: np.asarray(weights[f"{name}/{module}/{part}"]["w"])
            for part in ("query", "key", "value", "linear")
        }
        keys = z if include_query else z[:-1]
        query, key, value = z @ w["query"], keys @ w["key"], keys @ w["value"]
        k = query.shape[1] // num_heads
        read = []
        for head in range(num_heads):
            columns = slice(head * k, (head + 1) * k)
            read.append(query[:, columns] @ key[:, columns].T @ value[:, columns])
        z = z + np.concatenate(read, axis=1) @ w["linear"]
        predictions.append(-z[-1, -1])
    return np.array(predictions)


def ours(params, config, rows=ROWS):
    return layer_predictions(transformer.forward(params, jnp.asarray(rows), config))[1:]


@pytest.mark.parametrize("num_heads", [1, 2])
def test_layers_of_their_own_predict_as_theirs(num_heads):
    modules = ["~trans_block/layer_0", "~trans_block/layer_1"]
    weights = dictionary(num_heads, modules)
    params, config = von_oswald(weights, num_heads=num_heads)
    expected = theirs(weights, modules, num_heads, ROWS)
    np.testing.assert_allclose(ours(params, config), expected, rtol=1e-9)
    merged = linear_attention.forward(
        transformer.merge(params, config), jnp.asarray(ROWS), normalise=False
    )
    np.testing.assert_allclose(layer_predictions(merged)[1:], expected, rtol=1e-9)
    every = dataclasses.replace(config, keys="all")
    theirs_too = theirs(weights, modules, num_heads, ROWS, include_query=True)
    np.testing.assert_allclose(ours(params, every), theirs_too, rtol=1e-9)
    assert np.abs(theirs_too - expected).max() > 1e-2  # Control: the mask matters
    back = to_von_oswald(params)
    assert back.keys() == weights.keys()
    jax.tree.map(np.testing.assert_array_equal, back, weights)


def test_one_layer_is_applied_again_and_again():
    weights = dictionary(1, ["multi_head_attention"])
    params, config = von_oswald(weights, num_layers=3)
    expected = theirs(weights, 3 * ["multi_head_attention"], 1, ROWS)
    np.testing.assert_allclose(ours(params, config), expected, rtol=1e-9)
    flat = {f"{name}/w": leaf["w"] for name, leaf in weights.items()}
    jax.tree.map(np.testing.assert_array_equal, von_oswald(flat, num_layers=3)[0], params)


def test_descent_in_their_layout_is_descent():
    params = constructions.gradient_descent_plus_plus(jnp.full(2, 0.4), jnp.full(2, 0.1), E - 1)
    expected = layer_predictions(linear_attention.forward(params, jnp.asarray(ROWS)))[1:]
    weights = to_von_oswald(params, n=N, name="Transformer_gd")
    modules = ["~trans_block/layer_0", "~trans_block/layer_1"]
    predicted = theirs(weights, modules, 1, ROWS, name="Transformer_gd")
    np.testing.assert_allclose(predicted, expected, rtol=1e-9)
    np.testing.assert_allclose(ours(*von_oswald(weights)), expected, rtol=1e-9)
    unscaled = theirs(to_von_oswald(params), modules, 1, ROWS)  # Control: their sum is no mean
    assert np.abs(unscaled - expected).max() > 1e-2


NAME = "transformer/multi_head_attention"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({f"{NAME}/query": {"w": np.ones((E, K)), "b": np.ones(K)}}, f"has {NAME}/query/b"),
        ({"transformer/emb": {"w": np.ones((E, E))}}, "has transformer/emb/w"),
        ({"transformer/mlp/linear": {"w": np.ones((E, E))}}, "has transformer/mlp/linear/w"),
        ({f"{NAME}/key": {"w": np.ones((E, K + 1))}}, r"key of layer 0 has shape \(4, 4\)"),
        ({f"{NAME}/key": {"w": np.ones(E)}}, f"{NAME}/key/w is a matrix"),
        ({f"{NAME}/key": {}}, f"layer 0, {NAME}, has no key with a w"),
        ({"t/~trans_block/layer_1/query": {"w": np.ones((E, K))}}, "of one model"),
    ],
)
def test_what_has_no_place_is_refused_by_name(change, words):
    weights = dictionary(1, ["multi_head_attention"]) | change
    with pytest.raises((ValueError, AssertionError), match=words):
        von_oswald(weights)
