"""Recurrent layers: heads, attention, scans and chunks, precision; tests/golden has the kinds."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_weights, jit_numpy
from lsa_lab.estimators.prefixes import outer
from lsa_lab.models import recurrent, recurrent_state, trace
from lsa_lab.models.recurrent import Config

forward, states_of, attention = (
    jit_numpy(function, static_argnums=2)
    for function in (recurrent.forward, recurrent.states, recurrent.attention)
)
init = jit_numpy(recurrent.init, static_argnums=(1, 2))
T, E, K, V = 7, 5, 3, 2


def config_of(kind, **changes):
    more = {"delta_product": dict(inner=2, largest_step=2.0), "ttt": dict(inner=3)}
    sizes = dict(num_layers=2, num_heads=2, key_width=K, value_width=V)
    rest = sizes | dict(layout="bound", normalise=False) | more.get(kind, {})
    return Config(kind, E, **rest | changes)


@functools.cache
def draw(kind, **changes):
    """All leaves of one size, biases and gates too, which init begins elsewhere."""
    config, rng = config_of(kind, **changes), np.random.default_rng(3)
    return config, draw_weights(rng, recurrent.init, config, 0.25), rng.normal(size=(T, E))


def read_through(weights, config, params, walk):
    """What heads write that sum the values of all tokens by ``weights`` [L, H, T, T(, J)]."""
    rows = walk.stream[:-1]
    if config.norm:
        mean, var = rows.mean(-1, keepdims=True), rows.var(-1, keepdims=True)
        rows = (rows - mean) / np.sqrt(var + 1e-5)
        rows = rows * params.attention_norm_scale[:, None] + params.attention_norm_offset[:, None]
    values = np.einsum("lhve,lte->lhtv", params.w_v, rows)
    if config.kind == "gdn2":
        raw = np.einsum("lhve,lte->lhtv", params.w_write, rows) + params.b_write[:, :, None]
        values = values / (1 + np.exp(-raw))
    values = values.reshape(2, 2, -1, V)  # of each token one after the other
    return np.einsum("lhdv,lhtv->lhtd", params.w_o, weights.reshape(2, 2, T, -1) @ values)


# Merged tokens differ in what the query writes: a number of each way to write, and of all sums.
CASES = {
    "one value and its number": ("additive", dict(normalise=True)),
    "a norm": ("gla", dict(norm=True)),
    "several values": ("delta_product", {}),
    "a penalty that is kept": ("mesa", dict(solve="cholesky")),
    "a merged number": ("additive", dict(normalise=True, layout="merged")),
    **{f"merged {kind}": (kind, dict(layout="merged")) for kind in ("gated_delta", "gdn2", "mesa")},
}


@pytest.mark.parametrize("name", CASES)
def test_attention_and_values_explain_what_every_head_writes(name):
    kind, changes = CASES[name]
    config, params, tokens = draw(kind, **changes)
    walk = forward(params, tokens, config)
    weights = attention(params, walk, config)
    assert weights.shape == (2, 2, T, T) + (2,) * (kind == "delta_product")
    np.testing.assert_allclose(np.diff(walk.stream, axis=0), walk.heads.sum(1), atol=1e-12)
    written = read_through(weights, config, params, walk)
    np.testing.assert_allclose(written, walk.heads, rtol=1e-9, atol=1e-11)
    # No token reads a later one, nor a query itself.
    assert not np.triu(np.moveaxis(weights, (2, 3), (-2, -1)), 1).any()
    itself = np.diagonal(weights, axis1=2, axis2=3)
    assert itself[..., :-1].all()
    assert (itself[..., -1] == 0).all() == (config.layout == "merged")
    if config.layout == "merged":
        states = states_of(params, tokens, config)
        np.testing.assert_array_equal(states[0, :, -1], states[0, :, -2])


def test_a_model_without_heads_predicts_minus_the_label_slot_of_its_query():
    config, params, tokens = draw("mesa", layout="merged")
    silent = forward(params, tokens, config, np.zeros((2, 2)))
    np.testing.assert_array_equal(silent.stream[-1], tokens)
    assert trace.predict(silent) == -tokens[-1, -1]


def test_a_normalised_read_is_divided_by_the_tokens_that_wrote():
    config, params, tokens = draw("additive", layout="merged")
    plain, mean = (
        forward(params, tokens, dataclasses.replace(config, normalise=normalise)).heads[0]
        for normalise in (False, True)
    )
    written = np.array([*range(1, T), T - 1], float)
    np.testing.assert_allclose(mean * written[None, :, None], plain, atol=1e-12)


@pytest.mark.parametrize("m", [64, 70])
def test_chunks_and_their_gradients_are_those_of_the_scan(m):
    rng = np.random.default_rng(m)
    keys = rng.normal(size=(m, 4))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    keys[m // 3 : m // 2] = keys[m // 3]  # keys that repeat
    steps, values, queries = (rng.uniform(0, 2, (m, 1)), *rng.normal(size=(2, m, 4)))

    def differentiate(read):
        def loss(writes):
            return (read(writes, queries) ** 2).sum(), read(writes, queries)

        return jit_numpy(jax.grad(loss, has_aux=True))

    ways = [differentiate(w) for w in (recurrent_state.read_scan, recurrent_state.read_chunks)]
    random_gates = rng.uniform(0, 1, (m, 1))
    for gates in (np.ones((m, 1)), random_gates, np.where(random_gates < 0.2, 0.0, 0.99)):
        writes = recurrent_state.Writes(steps * keys, values, gates * keys, gates)
        one, other = (way(writes) for way in ways)
        jax.tree.map(
            functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9), one, other
        )


def test_the_derivative_of_unit_rows_is_that_of_keys_over_their_length():
    keys, moves = np.random.default_rng(0).normal(size=(2, 5, 3))

    def derivatives(way):
        first, slope = jax.jvp(way, (keys,), (moves,))
        return first, slope, jax.hessian(lambda keys: (way(keys) ** 3).sum())(keys)

    def plain(keys):
        return keys / jnp.linalg.norm(keys, axis=-1, keepdims=True)

    unit = recurrent_state.unit_rows
    ours, theirs = (jit_numpy(functools.partial(derivatives, way))() for way in (unit, plain))
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-12), ours, theirs)
    np.testing.assert_array_equal(jit_numpy(jax.jacrev(unit))(np.zeros((1, 3))), 0)


def test_an_outer_product_of_wide_vectors_is_a_product_of_matrices():
    left, right = np.random.default_rng(0).normal(size=(2, 8))
    np.testing.assert_array_equal(outer(left, right), np.outer(left, right))


def test_first_weights_have_the_dtype_that_was_asked_for_and_shrink_with_their_inputs():
    sizes = dict(
        width=400, key_width=np.int64(20), init_scale=np.float64(0.5), norm=True, mlp_width=4
    )
    config = config_of("mesa", **sizes)
    first = init(jax.random.key(0), config, jnp.float32)
    assert {leaf.dtype for leaf in jax.tree.leaves(first)} == {np.dtype(np.float32)}
    assert first.w_q.std() == pytest.approx(0.5 / 20, rel=0.05)
    assert (first.attention_norm_scale == 1).all()
    assert (first.mlp_norm_scale == 1).all()


def test_a_batch_of_long_prompts_runs_in_float32_where_nothing_is_erased():
    config = config_of("additive", num_layers=1, num_heads=1)
    params = init(jax.random.key(0), config, jnp.float32)
    tokens = np.random.default_rng(1).normal(size=(3, 65, E)).astype(np.float32)
    predict = jax.jit(recurrent.predict, static_argnums=2)
    batch = jax.jit(jax.vmap(lambda rows: recurrent.predict(params, rows, config)))(tokens)
    np.testing.assert_allclose(batch, [predict(params, t, config) for t in tokens], rtol=1e-4)


def test_states_of_mesa_keep_their_digits_whatever_the_penalty():
    rng, ones = np.random.default_rng(0), np.ones(512)
    keys = rng.normal(size=(512, 8))
    labels = keys.sum(1, keepdims=True) + 0.1 * rng.normal(size=(512, 1))
    regress = jax.jit(recurrent.recursive_least_squares)
    for penalty in (1.0, 1e-20):
        rows = ones, ones, keys, labels, np.array(penalty)
        exact = regress(*rows)
        for dtype, tolerance in ((jnp.float32, 1e-5), (jnp.bfloat16, 0.1)):
            states = regress(*(jnp.asarray(row, dtype) for row in rows))
            assert np.abs(states.astype(float) - exact).max() < tolerance


def test_the_derivative_of_recursive_least_squares_is_that_of_the_regression():
    rng, k = np.random.default_rng(0), 3

    def regress(weights, gates, x, y, penalty):
        sums, states = penalty * jnp.eye(k, k + y.shape[1]), []
        for t, row in enumerate(jnp.concatenate([x, y], 1)):
            sums = gates[t] * sums + weights[t] * x[t][:, None] * row[None]
            states.append(jnp.linalg.solve(sums[:, :k], sums[:, k:]))
        return jnp.stack(states)

    rows = *rng.uniform(0.5, 1, (2, 5)), rng.normal(size=(5, k)), rng.normal(size=(5, 2)), 0.3
    changes = *rng.normal(size=(2, 5)), rng.normal(size=(5, k)), rng.normal(size=(5, 2)), 0.2
    expected, found = (
        jit_numpy(functools.partial(jax.jvp, way))(rows, changes)
        for way in (regress, recurrent.recursive_least_squares)
    )
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9), found, expected)


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
    read = keys[-50:] @ np.asarray(states[-1], float)
    np.testing.assert_allclose(read, keys[-50:] @ last, atol=1e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("kind", "leaves", "dtype", "changes", "message"),
    [
        *(("delta", {}, float, dict(kind=kind), "config") for kind in ("gated_delta", "additive")),
        ("delta", {}, float, dict(norm=True), "config"),
        ("mesa", dict(log_penalty=-np.inf), float, {}, r"a penalty exp\(log_penalty\) is 0 or NaN"),
        ("mesa", dict(log_penalty=np.nan), float, {}, r"a penalty exp\(log_penalty\) is 0 or NaN"),
        ("mesa", {}, jnp.bfloat16, dict(solve="cholesky"), "keys are bfloat16"),
        ("lms", dict(b_step=1e200), float, {}, r"the state of layer [01], head ., .* token [012]"),
    ],
)
def test_params_that_do_not_fit_and_states_that_overflow_are_named(
    kind, leaves, dtype, changes, message
):
    config, params, tokens = draw(kind)
    leaves = {name: np.full_like(getattr(params, name), value) for name, value in leaves.items()}
    case = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), (params.replace(**leaves), tokens))
    with pytest.raises((ValueError, TypeError, AssertionError), match=message):
        recurrent.states(*case, dataclasses.replace(config, **changes))
    with pytest.raises(ValueError, match="layout"):
        recurrent.predict_prefixes(*case, dataclasses.replace(config, layout="merged"))
