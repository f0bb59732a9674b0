"""Published weights of linear attention predict as the code of their authors, in plain NumPy."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest

from lsa_lab.interop import ahn, von_oswald
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.trace import layer_predictions

E, K, N = 4, 3, 5
PARTS = ("query", "key", "value", "linear")
ROWS = np.random.default_rng(0).normal(size=(N + 1, E))
ROWS[-1, -1] = 0


def predict_ahn(allparam):
    """Return the predictions after each layer of whole P and Q."""
    z, predictions = ROWS, []
    for heads in allparam:
        z = z + sum(z @ q @ z[:N].T @ z[:N] @ p.T / N for p, q in heads)
        predictions.append(-z[N, -1])
    return np.array(predictions)


def predict_linear(params, **options):
    forward = jax.jit(partial(linear_attention.forward, **options))
    return layer_predictions(forward(params, ROWS))[1:]


def test_ahn_with_all_entries_free_predicts_as_their_equations():
    """Their own numbers for blocks are in tests/golden."""
    allparam = 0.5 * np.random.default_rng(1).normal(size=(3, 2, 2, E, E))
    expected = predict_ahn(allparam)
    np.testing.assert_allclose(predict_linear(ahn(allparam, full=True)), expected, rtol=1e-9)
    # Control: the key on Q's left, as in the paper, is another model.
    flipped = allparam.copy()
    flipped[:, :, 1] = flipped[:, :, 1].swapaxes(2, 3)
    assert np.abs(predict_linear(ahn(flipped, full=True)) - expected).max() > 1e-2
    for shape in ((3, 2, 3, 3), (3, 2, 2, 3, 4)):
        with pytest.raises(AssertionError, match="entry 0 of the third axis is P"):
            ahn(np.ones(shape))


def make_dictionary(num_heads, modules):
    """Return random weights under the names that Haiku gives them."""
    rng, weights = np.random.default_rng(1), {}
    for module in modules:
        for part in PARTS:
            shape = (num_heads * K, E) if part == "linear" else (E, num_heads * K)
            weights[f"transformer/{module}/{part}"] = {"w": 0.5 * rng.normal(size=shape)}
    return weights


def predict_von_oswald(weights, modules, num_heads, include_query=False):
    """Return the predictions after each layer: x @ w, no softmax and no mean."""
    z, predictions = ROWS, []
    for module in modules:
        w = {part: weights[f"transformer/{module}/{part}"]["w"] for part in PARTS}
        keys = z if include_query else z[:-1]
        inner = z @ w["query"], keys @ w["key"], keys @ w["value"]
        heads = zip(*(np.split(each, num_heads, axis=1) for each in inner), strict=True)
        read = [query @ key.T @ value for query, key, value in heads]
        z = z + np.concatenate(read, axis=1) @ w["linear"]
        predictions.append(-z[-1, -1])
    return np.array(predictions)


def predict_transformer(params, config):
    return layer_predictions(jax.jit(transformer.forward)(params, ROWS, config))[1:]


def test_von_oswald_predicts_as_their_code():
    modules = ["~trans_block/layer_0", "~trans_block/layer_1"]
    weights = make_dictionary(2, modules)
    params, config = von_oswald(weights, num_heads=2)
    expected = predict_von_oswald(weights, modules, 2)
    np.testing.assert_allclose(predict_transformer(params, config), expected, rtol=1e-9)
    merged = predict_linear(transformer.merge(params, config), normalise=False)
    np.testing.assert_allclose(merged, expected, rtol=1e-9)
    every = dataclasses.replace(config, keys="all")
    with_query = predict_von_oswald(weights, modules, 2, include_query=True)
    np.testing.assert_allclose(predict_transformer(params, every), with_query, rtol=1e-9)
    assert np.abs(with_query - expected).max() > 1e-2  # Control: the mask matters


def test_one_layer_is_applied_again_and_again():
    weights = make_dictionary(1, ["multi_head_attention"])
    params, config = von_oswald(weights, num_layers=3)
    expected = predict_von_oswald(weights, 3 * ["multi_head_attention"], 1)
    np.testing.assert_allclose(predict_transformer(params, config), expected, rtol=1e-9)
    flat = {f"{name}/w": leaf["w"] for name, leaf in weights.items()}
    jax.tree.map(np.testing.assert_array_equal, von_oswald(flat, num_layers=3)[0], params)


NAME = "transformer/multi_head_attention"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({f"{NAME}/query": {"w": np.ones((E, K)), "b": np.ones(K)}}, f"has {NAME}/query/b"),
        ({"transformer/emb": {"w": np.ones((E, E))}}, "has transformer/emb/w"),
        ({"transformer/mlp/linear": {"w": np.ones((E, E))}}, "has transformer/mlp/linear/w"),
        ({f"{NAME}/key": {"w": np.ones((E, K + 1))}}, "key of layer 0: "),
        ({f"{NAME}/key": {"w": np.ones(E)}}, f"{NAME}/key/w is a matrix"),
        ({f"{NAME}/key": {}}, f"layer 0, {NAME}, has no key with a w"),
        ({"t/~trans_block/layer_1/query": {"w": np.ones((E, K))}}, "of one model"),
    ],
)
def test_what_von_oswald_does_not_have_is_refused_by_name(change, words):
    weights = make_dictionary(1, ["multi_head_attention"]) | change
    with pytest.raises((ValueError, AssertionError), match=words):
        von_oswald(weights)
