"""Recurrent layers: heads, attention, scans and chunks; tests/golden has the recurrences."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.estimators.prefixes import outer
from lsa_lab.models import recurrent, recurrent_state, trace
from lsa_lab.models.recurrent import Config
from lsa_lab.models.recurrent_weights import Kind

KINDS = Kind.__args__
forward = jax.jit(recurrent.forward, static_argnums=2)
states_of = jax.jit(recurrent.states, static_argnums=2)
init = jax.jit(recurrent.init, static_argnums=(1, 2))
T, E, K, V = 7, 5, 3, 2


def config_of(kind, **changes):
    more = {"delta_product": dict(inner=2, largest_step=2.0), "ttt": dict(inner=3)}
    rest = dict(
        num_layers=2, num_heads=2, key_width=K, value_width=V, layout="bound", normalise=False
    )
    return Config(kind, E, **rest | more.get(kind, {}) | changes)


@functools.cache
def drawn(kind, **changes):
    """All leaves of one size, biases and gates too, which init begins elsewhere."""
    config, rng = config_of(kind, **dict(changes)), np.random.default_rng(3)
    shapes = jax.eval_shape(recurrent.init, jax.random.key(0), config)
    params = jax.tree.map(lambda leaf: 0.25 * rng.normal(size=leaf.shape), shapes)
    return config, params, rng.normal(size=(T, E))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_both_ways_of_a_mesa_layer_are_one_regression_where_nothing_is_forgotten():
    config, params, tokens = drawn("mesa")
    kept = params.replace(b_gate=np.full_like(params.b_gate, np.inf))
    ways = [dataclasses.replace(config, solve=way) for way in ("recursive", "cholesky")]
    one, other = (states_of(kept, tokens, way) for way in ways)
    np.testing.assert_allclose(one, other, atol=1e-11)
    # Control: with gates the recursive way forgets λ too.
    one, other = (np.asarray(states_of(params, tokens, way)) for way in ways)
    assert np.abs(one - other).max() > 1e-3


attention = jax.jit(recurrent.attention, static_argnums=2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_alone_in_one_layer_writes_and_keeps_the_same(kind):
    config, params, tokens = drawn(kind)
    walked, states = forward(params, tokens, config), states_of(params, tokens, config)
    alone = dataclasses.replace(config, num_layers=1, num_heads=1)
    for layer, head in ((0, 1), (1, 0)):
        one = jax.tree.map(lambda leaf, at=(layer, head): leaf[at][None, None], params)
        own = forward(one, walked.stream[layer], alone).heads[0, 0]
        np.testing.assert_allclose(own, walked.heads[layer, head], atol=1e-12)
        found = states_of(one, walked.stream[layer], alone)[0, 0]
        np.testing.assert_allclose(found, states[layer, head], atol=1e-12)
    np.testing.assert_allclose(np.diff(walked.stream, axis=0), walked.heads.sum(1), atol=1e-12)


def one_value(kind, layout="bound"):
    """A config in which a token writes one value, what it divides by included."""
    changes = dict(inner=1) if kind == "delta_product" else {}
    return drawn(kind, layout=layout, normalise=True, norm=kind == "gla", **changes)


def read_through(weights, config, params, trace):
    """What heads write that sum the values of all tokens by ``weights`` [L, H, T, T]."""
    rows = trace.stream[:-1]
    if config.norm:
        mean, var = rows.mean(-1, keepdims=True), rows.var(-1, keepdims=True)
        rows = (rows - mean) / np.sqrt(var + 1e-5)
        rows = rows * params.attention_norm_scale[:, None] + params.attention_norm_offset[:, None]
    values = np.einsum("lhve,lte->lhtv", params.w_v, rows)
    if config.kind == "gdn2":
        raw = np.einsum("lhve,lte->lhtv", params.w_write, rows) + params.b_write[:, :, None]
        values = sigmoid(raw) * values
    return np.einsum("lhdv,lhtv->lhtd", params.w_o, weights @ values)


# Merged tokens differ in what the query writes: a number of each way to write, and of all sums.
MERGED = [(kind, "merged") for kind in ("additive", "gated_delta", "gdn2", "mesa")]


@pytest.mark.parametrize(("kind", "layout"), [*((kind, "bound") for kind in KINDS), *MERGED])
def test_attention_and_values_explain_what_every_head_writes(kind, layout):
    config, params, tokens = one_value(kind, layout)
    walked = jax.device_get(forward(params, tokens, config))
    weights = np.asarray(attention(params, walked, config))
    np.testing.assert_allclose(
        read_through(weights, config, params, walked), walked.heads, rtol=1e-9, atol=1e-11
    )
    assert not np.triu(weights, 1).any()  # no token reads a later one
    itself = np.diagonal(weights, axis1=2, axis2=3)
    assert (itself[..., -1] == 0).all() == (layout == "merged")  # nor, if merged, the query itself
    assert itself[..., :-1].all()


def test_attention_of_a_batch_by_chunks_is_that_of_each_prompt_and_both_mesa_ways_have_one():
    config, params, _ = drawn("gated_delta")
    prompts = np.random.default_rng(1).normal(size=(2, 70, E))
    walked = jax.vmap(lambda rows: forward(params, rows, config))(prompts)
    every = jax.jit(jax.vmap(lambda walk: recurrent.attention(params, walk, config)))(walked)
    for weights, rows in zip(np.asarray(every), prompts, strict=True):
        own = jax.device_get(forward(params, rows, config))
        np.testing.assert_allclose(read_through(weights, config, params, own), own.heads, atol=1e-9)
    config, params, tokens = drawn("mesa", solve="cholesky")
    own = jax.device_get(forward(params, tokens, config))
    weights = np.asarray(attention(params, own, config))
    np.testing.assert_allclose(read_through(weights, config, params, own), own.heads, atol=1e-11)


def test_attention_of_tokens_that_write_several_values_has_an_axis_for_them():
    config, params, tokens = drawn("delta_product")
    walked = jax.device_get(forward(params, tokens, config))
    weights = np.asarray(attention(params, walked, config))
    assert weights.shape == (2, 2, T, T, config.inner)
    values = np.einsum("lhve,lte->lhtv", params.w_v, walked.stream[:-1])
    values = values.reshape(2, 2, T, config.inner, V)
    written = np.einsum("lhdv,lhtij,lhijv->lhtd", params.w_o, weights, values)
    np.testing.assert_allclose(written, walked.heads, rtol=1e-9, atol=1e-11)


def changes_of(seed, m, k, v, gates):
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(m, k))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    keys[m // 3 : m // 2] = keys[m // 3]  # keys that repeat
    steps = rng.uniform(0, 2, (m, 1))
    values, queries = rng.normal(size=(m, v)), rng.normal(size=(m, k))
    rows = steps * keys, values, gates[:, None] * keys, gates[:, None]
    return recurrent_state.Writes(*rows), queries


chunked, scanned = jax.jit(recurrent_state.read_chunks), jax.jit(recurrent_state.read_scan)


@pytest.mark.parametrize("m", [64, 75, 200])
def test_chunks_are_the_scan(m):
    rng = np.random.default_rng(m)
    for gates in (np.ones(m), rng.uniform(0, 1, m), np.where(rng.random(m) < 0.2, 0.0, 0.99)):
        writes, queries = changes_of(m, m, 4, 3, gates)
        together = np.asarray(chunked(writes, queries))
        np.testing.assert_allclose(together, scanned(writes, queries), atol=1e-11)
    others = np.where(np.arange(m)[:, None] == 40, 0, writes.write)
    assert np.abs(chunked(writes.replace(write=others), queries) - together).max() > 1e-6


def test_the_derivative_of_unit_rows_is_that_of_keys_over_their_length():
    keys, moves = np.random.default_rng(0).normal(size=(2, 5, 3))

    def plain(keys):
        return keys / jnp.linalg.norm(keys, axis=-1, keepdims=True)

    def derivatives(way):
        first, slope = jax.jvp(way, (keys,), (moves,))
        curved = jax.hessian(lambda keys: (way(keys) ** 3).sum())(keys)
        return first, slope, curved

    ours, theirs = (
        jax.jit(functools.partial(derivatives, way))() for way in (recurrent_state.unit_rows, plain)
    )
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-12), ours, theirs)
    at_zero = jax.jit(jax.jacrev(recurrent_state.unit_rows))(np.zeros((1, 3)))
    np.testing.assert_array_equal(at_zero, 0)


@pytest.mark.parametrize("widths", [(7, 9), (8, 9)])  # a sum, and a product of matrices
def test_an_outer_product_and_its_slopes_are_those_of_numpy(widths):
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=width) for width in widths)
    slope = rng.normal(size=widths)
    product, back = jax.vjp(jax.jit(outer), left, right)
    np.testing.assert_array_equal(product, np.outer(left, right))
    for own, expected in zip(back(slope), (slope @ right, left @ slope), strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-13)


def test_first_weights_shrink_with_the_number_of_their_inputs():
    config = config_of("delta", width=400, key_width=20, init_scale=0.5)
    first = jax.device_get(init(jax.random.key(0), config, jnp.float64))
    assert first.w_q.std() == pytest.approx(0.5 / 20, rel=0.05)


def test_gradients_through_chunks_are_those_through_the_scan():
    writes, queries = changes_of(0, 70, 3, 2, np.where(np.arange(70) % 9, 0.9, 0.0))
    slopes = [
        jax.jit(jax.grad(lambda w, way=way: (way(w, queries) ** 2).sum()))(writes)
        for way in (recurrent_state.read_scan, recurrent_state.read_chunks)
    ]
    for one, other in zip(*map(jax.tree.leaves, slopes), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_batch_of_long_prompts_runs_in_float32_where_nothing_is_erased():
    config = config_of("additive", key_width=16, value_width=16, width=32, norm=True)
    params = jax.device_get(init(jax.random.key(0), config, jnp.float32))
    tokens = np.random.default_rng(1).normal(size=(3, 65, E)).astype(np.float32)
    batch = jax.jit(jax.vmap(lambda rows: recurrent.predict(params, rows, config)))(tokens)
    alone = [jax.jit(recurrent.predict, static_argnums=2)(params, rows, config) for rows in tokens]
    np.testing.assert_allclose(batch, alone, rtol=1e-4)


def test_a_normalised_read_is_divided_by_the_tokens_that_wrote():
    config, params, tokens = drawn("additive", layout="merged")
    one = dataclasses.replace(config, num_layers=1)
    first = jax.tree.map(lambda leaf: leaf[:1], params)
    plain = forward(first, tokens, one).heads
    mean = np.asarray(forward(first, tokens, dataclasses.replace(one, normalise=True)).heads)
    written = np.array([*range(1, T), T - 1], float)
    np.testing.assert_allclose(mean * written[None, None, :, None], plain, atol=1e-12)


def test_the_query_of_merged_tokens_writes_nothing():
    for kind in ("additive", "ssd", "longhorn", "gated_delta", "gdn2", "delta_product", "mesa"):
        config, params, tokens = drawn(kind, layout="merged")
        states = np.asarray(states_of(params, tokens, config))
        np.testing.assert_array_equal(states[0, :, -1], states[0, :, -2])
    silent = jax.device_get(forward(params, tokens, config, np.zeros((2, 2))))
    np.testing.assert_array_equal(silent.stream[-1], tokens)
    assert trace.predict(silent) == -tokens[-1, -1]


def test_a_state_that_overflows_is_named():
    config, params, tokens = drawn("lms")
    wild = params.replace(b_step=params.b_step + 1e200)
    with pytest.raises(ValueError, match=r"the state of layer [01], head ., .* after token [012]"):
        recurrent.states(wild, tokens, config)


def test_a_penalty_of_zero_and_factors_in_half_precision_are_named():
    config, params, tokens = drawn("mesa")
    none = params.replace(log_penalty=jnp.full_like(params.log_penalty, -jnp.inf))
    for wrong in (none, params.replace(log_penalty=jnp.full_like(params.log_penalty, jnp.nan))):
        with pytest.raises(ValueError, match=r"a penalty exp\(log_penalty\) is 0 or NaN"):
            recurrent.forward(wrong, tokens, config)
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (params, tokens))
    with pytest.raises(TypeError, match="keys are bfloat16: Cholesky's factors"):
        recurrent.forward(*half, dataclasses.replace(config, solve="cholesky"))


def worst_digits(function, *arrays):  # float32, bfloat16
    """The largest error of a single and of a half precision beside double precision."""
    exact = function(*map(jnp.asarray, arrays))
    runs = [function(*(jnp.asarray(a, t) for a in arrays)) for t in (jnp.float32, jnp.bfloat16)]
    return [np.abs(np.asarray(run.astype(float)) - exact).max() for run in runs]


def test_states_of_delta_and_mesa_keep_their_digits_whatever_the_penalty():
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(512, 8))
    unit, ones = keys / np.linalg.norm(keys, axis=1, keepdims=True), np.ones(512)
    unit[100:] = unit[100]  # a key that repeats
    rows = unit / 2, rng.normal(size=(512, 1)), unit

    @jax.jit
    def delta(*arrays):
        return recurrent_state.read_scan(recurrent_state.Writes(*arrays), arrays[2])

    mesa = jax.jit(recurrent.recursive_least_squares)
    single, half = worst_digits(delta, *rows)
    assert single < 2e-6
    assert half < 0.1
    labels = keys.sum(1, keepdims=True) + 0.1 * rows[1]
    for penalty in (1.0, 1e-7, 1e-20):
        single, half = worst_digits(mesa, ones, ones, keys, labels, np.array(penalty))
        assert single < 1e-5
        assert half < 0.1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mesa_layer_with_gates_forgets_for_ever_where_some_directions_are_never_written(dtype):
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 6))  # of rank 3
    labels = keys @ rng.normal(size=(6, 1)) + 0.1 * rng.normal(size=(2000, 1))
    rows = np.ones(2000), np.full(2000, 0.9), keys, labels
    arrays = (jnp.asarray(row, dtype) for row in (*rows, 1.0))
    states = jax.jit(recurrent.recursive_least_squares)(*arrays)
    kept = 0.9 ** (np.arange(200)[::-1] / 2)[:, None]  # all before is below rounding
    last = np.linalg.lstsq(kept * keys[-200:], kept * labels[-200:], rcond=1e-10)[0]
    tolerance = 1e3 * np.finfo(dtype).eps
    read = keys[-50:] @ np.asarray(states[-1], float)
    np.testing.assert_allclose(read, keys[-50:] @ last, atol=tolerance)


def test_weights_have_the_dtype_that_was_asked_for():
    config = dataclasses.replace(config_of("mesa"), key_width=np.int64(3), init_scale=np.float64(1))
    leaves = jax.tree.leaves(recurrent.init(jax.random.key(0), config, jnp.float32))
    assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float32)}


def test_params_of_another_config_are_refused():
    config, params, tokens = drawn("delta")
    for changes in (dict(kind="gated_delta"), dict(kind="additive"), dict(norm=not config.norm)):
        with pytest.raises(AssertionError, match="config"):
            recurrent.forward(params, tokens, dataclasses.replace(config, **changes))
    with pytest.raises(ValueError, match="layout"):
        recurrent.predict_prefixes(params, tokens, dataclasses.replace(config, layout="merged"))
