"""The transformer: kernels, layouts, uneven heads, gates, merging, prefixes, memory."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.models import linear_attention, transformer, transformer_layers
from lsa_lab.models.trace import label_slots
from lsa_lab.models.trace import predict as predict_last
from lsa_lab.models.transformer import Config

BASE = Config(token_width=3, num_layers=2, heads=2, key_width=2, init_scale=1.0)
RICH = dataclasses.replace(BASE, width=5, norm=True, mlp_width=4)
INTERLEAVED = dataclasses.replace(BASE, layout="interleaved", keys="causal")
UNEVEN = dataclasses.replace(RICH, num_layers=3, heads=(3, 1, 1))
SHAPES = {
    "uneven": UNEVEN,
    "linear": dataclasses.replace(UNEVEN, kernel="linear"),
    "interleaved": dataclasses.replace(INTERLEAVED, width=4, mlp_width=3),
    "biased": dataclasses.replace(RICH, heads=(2, 1), mlp_width=None, biases=True),
}
init = jit_numpy(transformer.init, static_argnames="dtype")
forward, predict = jit_numpy(transformer.forward), jit_numpy(transformer.predict)
predict_prefixes, merge = jit_numpy(transformer.predict_prefixes), jit_numpy(transformer.merge)
attention = jit_numpy(transformer.attention)
attend, attention_of_merged = (
    jit_numpy(function, static_argnames=("keys", "normalise"))
    for function in (linear_attention.forward, linear_attention.attention)
)


def draw(config, num_tokens=7, dtype=np.float64):
    rng = np.random.default_rng(0)
    params = init(jax.random.key(0), config, dtype=dtype)
    return params, rng.normal(size=(num_tokens, config.token_width)).astype(dtype)


def change_all(params):
    """Move norms, biases and absent heads away from where ``init`` puts them."""
    return jax.tree.map(lambda leaf: (1.1 * leaf + 0.1).astype(leaf.dtype), params)


def abstract(config):
    """Shapes and types of float32 weights: enough to trace and to compile."""
    key = jax.random.key(0)
    return jax.eval_shape(lambda: transformer.init(key, config, dtype=jnp.float32))


def close(first, second, tolerance=1e-10):
    np.testing.assert_allclose(first, second, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("keys", "normalise"), [("demonstrations", True), ("all", False), ("causal", True)]
)
def test_a_plain_linear_transformer_is_merged_linear_attention(keys, normalise):
    rule = dict(keys=keys, normalise=normalise)
    config = dataclasses.replace(BASE, kernel="linear", **rule)
    params, tokens = draw(config)
    mask = np.array([[1.0, 0.5], [0.0, 1.0]])
    factored, weights = forward(params, tokens, config, mask), merge(params, config)
    merged = attend(weights, tokens, head_mask=mask, **rule)
    close(factored.stream, merged.stream)
    close(factored.heads, merged.heads)
    close(attention(params, factored, config), attention_of_merged(weights, factored, **rule))


@pytest.mark.parametrize(
    "change",
    [
        *(dict(kernel="softmax"), dict(norm=True), dict(mlp_width=4), dict(width=5)),
        *(dict(biases=True), dict(layout="interleaved", keys="causal")),
    ],
)
def test_only_plain_linear_attention_is_merged(change):
    plain = dataclasses.replace(BASE, kernel="linear")
    config = dataclasses.replace(plain, **change)
    with pytest.raises(ValueError, match=f"the config has {next(iter(change))}"):
        transformer.merge(abstract(config), config)
    params = abstract(plain).replace(read_out=jnp.ones(3))
    with pytest.raises(AssertionError, match="params do not fit the config"):
        transformer.merge(params, plain)


@pytest.mark.parametrize("name", SHAPES)
def test_attention_and_values_explain_what_every_head_writes(name):
    config = SHAPES[name]
    params, tokens = draw(config)
    params = change_all(params)
    trace = forward(params, tokens, config)
    rows = trace.stream[:-1]
    if config.norm:
        rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
        rows = rows * params.attention_norm_scale[:, None] + params.attention_norm_offset[:, None]
    weights = attention(params, trace, config)
    values = np.einsum("lhkd,lid->lhik", params.w_v, rows)
    values = values + params.b_v[:, :, None] if config.biases else values
    close(trace.heads, np.einsum("lhti,lhik,lhdk->lhtd", weights, values, params.w_o))
    if config.mlp_width is None:
        close(np.diff(trace.stream, axis=0), trace.heads.sum(1) + params.b_o[:, None])
    if config.kernel == "softmax":
        close(weights.sum(-1)[weights.any((2, 3))], 1.0)


def test_absent_heads_write_nothing_and_learn_nothing():
    config = dataclasses.replace(UNEVEN, biases=True)
    params, tokens = draw(config)
    absent = np.array([[0, 0, 0], [0, 1, 1], [0, 1, 1]], bool)
    gradient = jit_numpy(jax.grad(transformer.predict))(params, tokens, config)
    for name in ("w_q", "w_k", "w_v", "w_o"):
        for weights in (getattr(params, name), getattr(gradient, name)):
            assert not weights[absent].any()
            assert (np.abs(weights[~absent]).max((1, 2)) > 0).all()
    trace = forward(params, tokens, config)
    silent = (gradient.b_q, gradient.b_v, trace.heads, attention(params, trace, config))
    assert not any(leaf[absent].any() for leaf in silent)


def test_an_interleaved_token_reads_the_mean_over_itself_and_those_before_it():
    config = dataclasses.replace(INTERLEAVED, kernel="linear", num_layers=1)
    params, tokens = draw(config)
    w_q, w_k, w_v, w_o = (w[0] for w in (params.w_q, params.w_k, params.w_v, params.w_o))
    scores = np.tril(np.einsum("td,hkd,hke,ie->hti", tokens, w_q, w_k, tokens))
    sums = np.einsum("hti,hkd,id,hek->hte", scores, w_v, tokens, w_o)
    expected = sums / np.arange(1, 8)[:, None]
    close(forward(params, tokens, config).heads[0], expected)


@pytest.mark.parametrize(
    ("layout", "keys"), [("merged", "demonstrations"), ("interleaved", "causal")]
)
def test_softmax_reads_a_prompt_by_rows_as_it_does_at_once(layout, keys, monkeypatch):
    config = dataclasses.replace(BASE, heads=(2, 1), layout=layout, keys=keys)

    def run(config):
        def read(params, tokens):
            trace = transformer.forward(params, tokens, config)
            return label_slots(trace)[:, -1], trace

        def derivatives(params, tokens):
            slope = jax.grad(lambda tokens: read(params, tokens)[0].sum())
            curved = jax.jvp(slope, (tokens,), (tokens,))  # forward over reverse: interactions
            return jax.jacrev(read, (0, 1), has_aux=True)(params, tokens), curved

        # Of the second layout the mask alone differs.
        return jit_numpy(derivatives if layout == "merged" else read)(*draw(BASE))

    at_once = run(config)
    monkeypatch.setattr(transformer_layers, "_MANY", 6)
    monkeypatch.setattr(transformer_layers, "_ROWS", 3)  # in the last block two are no tokens
    traced_anew = run(dataclasses.replace(config, init_scale=2.0))
    jax.tree.map(functools.partial(close, tolerance=1e-12), traced_anew, at_once)


def count_bytes(function, *shapes):
    return jax.jit(function).lower(*shapes).compile().memory_analysis().temp_size_in_bytes


def test_flows_of_softmax_need_memory_in_proportion_to_the_prompt():
    def layers(tokens, params):
        return label_slots(transformer.forward(params, tokens, RICH))[1:, -1]

    short, long = (
        count_bytes(jax.jacrev(layers), jax.ShapeDtypeStruct((n, 3), jnp.float32), abstract(RICH))
        for n in (510, 2040)
    )
    assert long < 6 * short  # that of all scores at once is more than 12 times as large


@pytest.mark.parametrize("model", ["merged", "factored"])
def test_linear_attention_needs_32_mebibytes_for_the_gradient_of_a_prompt_of_4096(model):
    rest = dict(kernel="linear", layout="interleaved", keys="causal")
    config = Config(21, num_layers=4, heads=4, key_width=21, **rest)
    params = abstract(config)
    run = functools.partial(transformer.predict, config=config)
    if model == "merged":
        params = linear_attention.Params(*(jax.ShapeDtypeStruct((4, 4, 21, 21), jnp.float32),) * 2)

        def run(params, tokens):
            return predict_last(linear_attention.forward(params, tokens, keys="causal"))

    tokens = jax.ShapeDtypeStruct((4097, 21), jnp.float32)
    assert count_bytes(jax.grad(run, (0, 1)), params, tokens) <= 32 * 2**20


def test_a_config_has_pythons_numbers_and_weights_the_dtype_that_was_asked_for():
    sizes = dict(num_layers=np.int64(2), heads=(np.int64(2), 1), key_width=np.int64(3))
    config = dataclasses.replace(BASE, **sizes, width=np.int32(4), init_scale=np.float64(0.5))
    assert json.loads(json.dumps(dataclasses.asdict(config)))["heads"] == [2, 1]
    assert {leaf.dtype for leaf in jax.tree.leaves(abstract(config))} == {np.dtype(np.float32)}


def test_at_first_the_extras_are_neutral_but_for_the_norm():
    plain = dataclasses.replace(SHAPES["interleaved"], heads=(2, 1), norm=True)
    more = dataclasses.replace(plain, biases=True, final_norm=True, num_positions=9)
    close(*(forward(*draw(config), config).stream for config in (plain, more)))


FULL = dataclasses.replace(RICH, biases=True, final_norm=True, num_positions=9)
FULL_SHAPES = {
    "full": (FULL, np.float64),
    "prefixes": (dataclasses.replace(INTERLEAVED, num_positions=9, width=4), np.float64),
    "uneven": (dataclasses.replace(BASE, heads=(2, 1), keys="all", mlp_width=2), np.float64),
    "linear": (dataclasses.replace(BASE, kernel="linear", norm=True), np.float32),
}


@pytest.mark.parametrize("name", FULL_SHAPES)
def test_predictions_are_those_of_the_full_trace(name):
    """The last layer of ``predict`` runs for few tokens: same values and gradients."""
    config, dtype = FULL_SHAPES[name]
    interleaved = config.layout == "interleaved"
    params, tokens = draw(config, dtype=dtype)
    gates = np.random.default_rng(1).uniform(size=(config.num_layers, config.num_heads))
    arrays = change_all(params), np.stack([tokens, -tokens]), gates.astype(dtype)

    def read_trace(params, tokens, config, gates):
        read = slice(None, None, 2) if interleaved else -1
        return -label_slots(transformer.forward(params, tokens, config, gates))[-1, read]

    def differentiate(form):
        def loss(params, tokens, gates):
            predicted = jax.vmap(form, (None, 0, None, None))(params, tokens, config, gates)
            return (predicted**2).sum(), predicted

        return jit_numpy(jax.grad(loss, (0, 1, 2), has_aux=True))(*arrays)

    def compare(fast, slow):
        assert fast.dtype == slow.dtype == dtype
        scale = max(1, np.abs(slow).max())
        tolerance = 1e-10 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(fast / scale, slow / scale, rtol=0, atol=tolerance)

    form = transformer.predict_prefixes if interleaved else transformer.predict
    jax.tree.map(compare, differentiate(form), differentiate(read_trace))
