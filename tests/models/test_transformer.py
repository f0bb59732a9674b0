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
from lsa_lab.models.transformer import Config

KEYS = ["demonstrations", "all", "causal"]
LAYOUTS = [("merged", keys) for keys in KEYS] + [("interleaved", "causal")]
BASE = Config(token_width=3, num_layers=2, heads=2, key_width=2, init_scale=1.0)
RICH = dataclasses.replace(BASE, width=5, norm=True, mlp_width=4)
INTERLEAVED = dataclasses.replace(BASE, layout="interleaved", keys="causal")
SHAPES = {
    "softmax": BASE,
    "rich": RICH,
    "uneven": dataclasses.replace(RICH, num_layers=3, heads=(3, 1, 1)),
    "interleaved": dataclasses.replace(INTERLEAVED, width=4, mlp_width=3),
    "biased": dataclasses.replace(RICH, heads=(2, 1), mlp_width=None, biases=True),
}
init = jax.jit(transformer.init, static_argnames="dtype")
forward, predict = jit_numpy(transformer.forward), jit_numpy(transformer.predict)
predict_prefixes, merge = jit_numpy(transformer.predict_prefixes), jit_numpy(transformer.merge)
attention, attend = (
    jit_numpy(transformer.attention),
    jax.jit(linear_attention.forward, static_argnames=("keys", "normalise")),
)


def draw(config, num_tokens=7, seed=0):
    params = jax.device_get(init(jax.random.key(seed), config))
    return params, np.random.default_rng(seed).normal(size=(num_tokens, config.token_width))


def abstract(config):
    """Shapes and types of float32 weights: enough to trace and to compile."""
    return jax.eval_shape(lambda key: init(key, config, dtype=jnp.float32), jax.random.key(0))


def close(first, second, tolerance=1e-10):
    np.testing.assert_allclose(first, second, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("keys", "normalise"), [("demonstrations", True), ("all", False), ("causal", True)]
)
def test_a_plain_linear_transformer_is_merged_linear_attention(keys, normalise):
    config = dataclasses.replace(BASE, kernel="linear", keys=keys, normalise=normalise)
    params, tokens = draw(config)
    mask = np.array([[1.0, 0.5], [0.0, 1.0]])
    factored = forward(params, tokens, config, mask)
    weights = merge(params, config)
    merged = attend(weights, tokens, keys=keys, normalise=normalise, head_mask=mask)
    close(factored.stream, merged.stream)
    close(factored.heads, merged.heads)
    close(
        attention(params, factored, config),
        linear_attention.attention(weights, factored, keys=keys, normalise=normalise),
    )


@pytest.mark.parametrize(
    "change",
    [
        *(dict(kernel="softmax"), dict(norm=True), dict(mlp_width=4), dict(width=5)),
        *(dict(biases=True), dict(layout="interleaved", keys="causal")),
    ],
)
def test_only_plain_linear_attention_is_merged(change):
    config = dataclasses.replace(BASE, **{"kernel": "linear"} | change)
    with pytest.raises(ValueError, match=next(iter(change))):
        transformer.merge(abstract(config), config)


def test_merge_refuses_what_a_config_may_learn_later():
    @dataclasses.dataclass(frozen=True)
    class Rotary(Config):
        base: float | None = None

    plain = {"token_width": 3, "num_layers": 1, "heads": 1, "key_width": 2, "kernel": "linear"}
    params, _ = draw(Config(**plain))
    transformer.merge(params, Config(**plain, keys="all", normalise=False))
    with pytest.raises(ValueError, match=r"the config has base=100\.0"):
        transformer.merge(params, Rotary(**plain, base=100.0))
    with pytest.raises(AssertionError, match="params do not fit the config"):
        transformer.merge(params.replace(read_out=params.w_q[0, 0, 0]), Config(**plain))


@pytest.mark.parametrize(
    ("name", "kernel"), [*((name, "softmax") for name in SHAPES), ("uneven", "linear")]
)
def test_attention_and_values_explain_what_every_head_writes(name, kernel):
    config = dataclasses.replace(SHAPES[name], kernel=kernel)
    params, tokens = draw(config)
    params = jax.tree.map(lambda w: 1.1 * w + 0.1, params)  # norms and absent heads too
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
        bias = params.b_o[:, None] if config.biases else 0.0
        close(trace.stream[1:] - trace.stream[:-1], trace.heads.sum(1) + bias)


@pytest.mark.parametrize(("layout", "keys"), LAYOUTS)
def test_softmax_weights_sum_to_one_over_the_readable_keys(layout, keys):
    config = dataclasses.replace(BASE, layout=layout, keys=keys)
    params, tokens = draw(config)
    weights = attention(params, forward(params, tokens, config), config)
    close(weights.sum(-1), 1.0)
    allowed = linear_attention.key_mask(keys, 7)
    if layout == "interleaved":
        allowed = np.tril(np.ones((1, 1, 7, 7), bool))
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(allowed, weights.shape))


def test_absent_heads_write_nothing_and_learn_nothing():
    config = dataclasses.replace(SHAPES["uneven"], biases=True)
    params, tokens = draw(config)
    absent = np.array([[0, 0, 0], [0, 1, 1], [0, 1, 1]], bool)
    gradient = jit_numpy(jax.grad(transformer.predict))(params, tokens, config)
    for name in ("w_q", "w_k", "w_v", "w_o"):
        for weights in (getattr(params, name), getattr(gradient, name)):
            assert not weights[absent].any()
            assert (np.abs(weights[~absent]).max((1, 2)) > 0).all()
    assert not gradient.b_q[absent].any()
    assert not gradient.b_v[absent].any()
    trace = forward(params, tokens, config)
    assert not trace.heads[absent].any()
    assert not attention(params, trace, config)[absent].any()


def test_an_interleaved_token_reads_the_mean_over_itself_and_those_before_it():
    config = dataclasses.replace(INTERLEAVED, kernel="linear")
    params, tokens = draw(config)
    trace = forward(params, tokens, config)
    expected = np.zeros_like(trace.heads[0])
    for h, (w_q, w_k, w_v, w_o) in enumerate(
        zip(params.w_q[0], params.w_k[0], params.w_v[0], params.w_o[0], strict=True)
    ):
        for t in range(7):
            reads = [(w_k @ u) @ (w_q @ tokens[t]) * (w_v @ u) for u in tokens[: t + 1]]
            expected[h, t] = w_o @ np.mean(reads, axis=0)
    close(trace.heads[0], expected)
    assert np.abs(expected * 7 / np.arange(1, 8)[:, None] - expected).max() > 1e-3  # Control


@pytest.mark.parametrize("kernel", ["softmax", "linear"])
def test_a_prefix_is_predicted_as_if_it_were_the_prompt(kernel):
    config = dataclasses.replace(
        INTERLEAVED, kernel=kernel, width=4, norm=True, mlp_width=3, num_positions=9
    )
    params, tokens = draw(config)
    params = params.replace(positions=np.random.default_rng(1).normal(size=(9, 4)))
    prefixes = predict_prefixes(params, tokens, config)
    alone = [predict(params, tokens[:length], config) for length in (1, 3, 7)]
    close(prefixes[[0, 1, 3]], alone)


@pytest.mark.parametrize(("layout", "keys"), LAYOUTS)
def test_softmax_reads_a_prompt_by_rows_as_it_does_at_once(layout, keys, swap):
    config = dataclasses.replace(SHAPES["uneven"], layout=layout, keys=keys)
    params, tokens = draw(config, 7)

    def trace_and_flows():
        if (layout, keys) != LAYOUTS[0]:  # of the others the mask alone differs
            return jax.device_get(
                jax.jit(lambda *given: transformer.forward(*given, config))(params, tokens)
            )

        def read(params, tokens):
            trace = transformer.forward(params, tokens, config)
            return label_slots(trace)[:, -1], trace

        def derivatives(params, tokens):
            slope = jax.grad(lambda tokens: read(params, tokens)[0].sum())
            curved = jax.jvp(slope, (tokens,), (tokens,))  # forward over reverse: interactions
            return jax.jacrev(read, (0, 1), has_aux=True)(params, tokens), curved

        return jax.device_get(jax.jit(derivatives)(params, tokens))

    at_once = trace_and_flows()
    swap(transformer_layers, "_MANY", 6)
    swap(transformer_layers, "_ROWS", 3)  # in the last block two are no tokens
    jax.tree.map(lambda *pair: close(*pair, tolerance=1e-12), trace_and_flows(), at_once)


def memory_of_flows(num_tokens):
    tokens = jax.ShapeDtypeStruct((num_tokens, RICH.token_width), jnp.float32)

    def layers(tokens, params):
        return label_slots(transformer.forward(params, tokens, RICH))[1:, -1]

    compiled = jax.jit(jax.jacrev(layers)).lower(tokens, abstract(RICH)).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_flows_of_softmax_need_memory_in_proportion_to_the_prompt(swap):
    assert memory_of_flows(2040) < 6 * memory_of_flows(510)
    swap(transformer_layers, "_MANY", 2040)  # a control
    assert memory_of_flows(2040) > 12 * memory_of_flows(510)


def test_a_config_has_pythons_numbers_and_weights_the_dtype_that_was_asked_for():
    sizes = dict(num_layers=np.int64(2), heads=(np.int64(2), 1), key_width=np.int64(3))
    config = dataclasses.replace(BASE, **sizes, width=np.int32(4), init_scale=np.float64(0.5))
    assert json.loads(json.dumps(dataclasses.asdict(config)))["heads"] == [2, 1]
    for leaf in jax.tree.leaves(transformer.init(jax.random.key(0), config, jnp.float32)):
        assert leaf.dtype == jnp.float32


def test_the_linear_kernel_needs_32_mebibytes_for_a_prompt_of_4096():
    rest = dict(kernel="linear", layout="interleaved", keys="causal")
    config = Config(21, num_layers=4, heads=4, key_width=21, **rest)
    params = abstract(config)
    tokens = jnp.zeros((4097, 21), jnp.float32)
    gradient = jax.jit(jax.grad(transformer.predict, (0, 1)))
    compiled = gradient.lower(params, tokens, config).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= 32 * 2**20


def test_at_first_the_extras_are_neutral_but_for_the_norm():
    plain = dataclasses.replace(SHAPES["interleaved"], heads=(2, 1), norm=True)
    more = dataclasses.replace(plain, biases=True, final_norm=True, num_positions=9)
    streams = [forward(*draw(config), config).stream for config in (plain, more)]
    close(*streams)


WIDE = dataclasses.replace(
    BASE, width=5, norm=True, mlp_width=7, biases=True, final_norm=True, num_positions=9
)
WIDE_SHAPES = {
    "wide": WIDE,
    "prefixes": dataclasses.replace(WIDE, layout="interleaved", keys="causal"),
    "uneven": dataclasses.replace(BASE, num_layers=3, heads=(3, 1, 1), keys="all", mlp_width=2),
    "linear": dataclasses.replace(WIDE, kernel="linear"),
}


@functools.partial(jax.jit, static_argnums=(0, 1))
def draw_many(config, dtype):
    params = transformer.init(jax.random.key(0), config, dtype)
    params = jax.tree.map(lambda w: (1.1 * w + 0.1).astype(dtype), params)  # norms and biases too
    key_tokens, key_gates = jax.random.split(jax.random.key(1))
    tokens = jax.random.normal(key_tokens, (4, 7, config.token_width), dtype)
    return (
        params,
        tokens,
        jax.random.uniform(key_gates, (config.num_layers, config.num_heads), dtype),
    )


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, jnp.float64) for name in WIDE_SHAPES), ("wide", jnp.float32)]
)
def test_predictions_are_those_of_the_full_trace(name, dtype):
    """The last layer of ``predict`` runs for few tokens: same values and gradients."""
    config, tolerance = WIDE_SHAPES[name], 1e-10 if dtype == jnp.float64 else 1e-5
    interleaved = config.layout == "interleaved"
    predict = transformer.predict_prefixes if interleaved else transformer.predict
    read = slice(None, None, 2) if interleaved else -1

    def read_trace(params, tokens, config, gates):
        return -label_slots(transformer.forward(params, tokens, config, gates))[-1, read]

    def value_and_grads(form):
        def loss(params, tokens, gates):
            predicted = jax.vmap(form, (None, 0, None, None))(params, tokens, config, gates)
            return (predicted**2).sum(), predicted

        run = jax.jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))
        return run(*draw_many(config, dtype))

    def compare(fast, slow):
        assert fast.dtype == slow.dtype
        scale = max(1, np.abs(slow).max())
        np.testing.assert_allclose(fast / scale, slow / scale, rtol=0, atol=tolerance)

    jax.tree.map(compare, *jax.device_get((value_and_grads(predict), value_and_grads(read_trace))))
