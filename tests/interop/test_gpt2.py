"""A GPT-2 style regression transformer predicts as its forward in plain NumPy."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy.special import softmax

from lsa_lab.interop import gpt2_regression
from lsa_lab.models import transformer
from lsa_lab.models.trace import label_slots
from lsa_lab.prompts import Prompt, interleaved_tokens

LAYERS, HEADS, WIDTH, HIDDEN, D, N = 2, 2, 8, 12, 3, 4
X, Y = np.split(np.random.default_rng(0).normal(size=(N + 1, D + 1)), [D], axis=1)
PROMPT = Prompt(*map(jnp.asarray, (X[:-1], Y[:-1, 0], X[-1], Y[-1, 0])))


def weights(prefix="_backbone."):
    """Random numbers in every leaf, norms and biases too, under the names of the paper's code."""
    maps = {"ln_1": (WIDTH,), "ln_2": (WIDTH,), "attn.c_attn": (WIDTH, 3 * WIDTH)}
    maps |= {"attn.c_proj": (WIDTH, WIDTH), "mlp.c_fc": (WIDTH, HIDDEN)}
    maps |= {"mlp.c_proj": (HIDDEN, WIDTH)}
    maps = {f"h.{i}.{name}": shape for i in range(LAYERS) for name, shape in maps.items()}
    shapes = {f"{prefix}wpe.weight": (2 * N + 4, WIDTH)}
    for name, shape in (maps | {"ln_f": (WIDTH,)}).items():
        shapes |= {f"{prefix}{name}.weight": shape, f"{prefix}{name}.bias": shape[-1:]}
    shapes |= {"_read_in.weight": (WIDTH, D), "_read_in.bias": (WIDTH,)}
    shapes |= {"_read_out.weight": (1, WIDTH), "_read_out.bias": (1,)}
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def norm(rows, leaves, name):
    centred = rows - rows.mean(1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    return centred / deviation * leaves[f"{name}.weight"] + leaves[f"{name}.bias"]


def predict_in_numpy(leaves, x, y, p="_backbone."):
    """Their predictions at x_1, ..., x_{n+1}: after every layer, through the last norm."""

    def linear(rows, name):
        return rows @ leaves[f"{name}.weight"] + leaves[f"{name}.bias"]

    pairs = np.zeros((2 * len(y), D))
    pairs[::2], pairs[1::2, 0] = x, y
    u = pairs @ leaves["_read_in.weight"].T + leaves["_read_in.bias"]
    u = u + leaves[f"{p}wpe.weight"][: len(u)]
    streams = [u]
    for i in range(LAYERS):
        h, k = f"{p}h.{i}", WIDTH // HEADS
        queries, keys, values = np.split(
            linear(norm(u, leaves, f"{h}.ln_1"), f"{h}.attn.c_attn"), 3, axis=1
        )
        read = np.zeros_like(u)
        for head in range(HEADS):
            part = slice(head * k, (head + 1) * k)
            scores = queries[:, part] @ keys[:, part].T / np.sqrt(k)
            scores[np.triu_indices(len(u), 1)] = -np.inf
            read[:, part] = softmax(scores, axis=1) @ values[:, part]
        u = u + linear(read, f"{h}.attn.c_proj")
        hidden = linear(norm(u, leaves, f"{h}.ln_2"), f"{h}.mlp.c_fc")
        hidden = hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3))) / 2
        u = u + linear(hidden, f"{h}.mlp.c_proj")
        streams.append(u)
    slots = [norm(u, leaves, f"{p}ln_f") @ leaves["_read_out.weight"][0] for u in streams]
    return np.array(slots)[:, ::2] + leaves["_read_out.bias"]


def write(tmp_path, leaves, **metadata):
    save_file(leaves, tmp_path / "model.safetensors", metadata)
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("prefix", ["_backbone.", "transformer.", ""])
def test_a_file_predicts_as_their_forward(tmp_path, prefix):
    leaves = weights(prefix)
    expected = predict_in_numpy(leaves, X, Y[:, 0], prefix)
    unused = {f"{prefix}wte.weight": np.ones((5, WIDTH)), f"{prefix}h.0.attn.bias": np.ones((1, 1))}
    params, config = gpt2_regression(write(tmp_path, leaves | unused), num_heads=HEADS)
    tokens = interleaved_tokens(PROMPT)
    predict = jax.jit(transformer.predict_prefixes)
    np.testing.assert_allclose(predict(params, tokens, config), expected[-1], rtol=1e-9)
    if prefix == "_backbone.":
        trace = jax.jit(transformer.forward)(params, tokens, config)
        lens = -label_slots(trace)[:, ::2]
        np.testing.assert_allclose(lens, expected, rtol=1e-9)  # every layer, the logit lens
        for name, leaf in vars(params).items():  # Control: no leaf is without effect
            other = leaf * np.random.default_rng(2).uniform(0.5, 1.5, leaf.shape)
            changed = predict(params.replace(**{name: other}), tokens, config)
            same = np.allclose(changed, expected[-1], rtol=1e-6)
            assert same == (name == "b_k"), name  # a softmax does not see what all keys share


def test_metadata_says_the_heads_and_half_precision_is_widened(tmp_path):
    halves = (np.float16, ml_dtypes.bfloat16)
    leaves = {name: leaf.astype(halves[i % 2]) for i, (name, leaf) in enumerate(weights().items())}
    params, config = gpt2_regression(write(tmp_path, leaves, n_head=str(HEADS)))
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
    assert config.num_heads == HEADS
    wide = leaves["_backbone.ln_f.weight"].astype(np.float32)
    np.testing.assert_array_equal(params.final_norm_scale, wide)
    with pytest.raises(ValueError, match="num_heads is None"):
        gpt2_regression(write(tmp_path, leaves))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"_read_out.weight": None}, "has no read_out.weight"),
        ({"_backbone.h.1.ln_1.bias": None}, "has no h.1.ln_1.bias"),
        ({"_backbone.ln_f.weight": (WIDTH + 1,)}, "ln_f.weight has shape"),
        ({"_backbone.h.0.mlp.c_fc.weight": (HIDDEN, WIDTH)}, "c_fc.weight has shape"),
        ({"lm_head.weight": (5, WIDTH)}, "has lm_head.weight; expected a GPT-2 without it"),
        ({"read_in.bias": (WIDTH,)}, "has _read_in.bias and read_in.bias; expected one model"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path, change, words):
    leaves = weights()
    for name, shape in change.items():
        leaves.pop(name, None)
        if shape is not None:
            leaves[name] = np.ones(shape)
    with pytest.raises(ValueError, match=words):
        gpt2_regression(write(tmp_path, leaves), num_heads=HEADS)
