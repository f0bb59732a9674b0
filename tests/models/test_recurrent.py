"""Recurrent layers are the recurrences of their papers, in scans and in chunks."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.models import recurrent, recurrent_state, trace
from lsa_lab.models.recurrent import Config
from lsa_lab.models.recurrent_weights import Kind

KINDS = Kind.__args__
T, E, K, V = 7, 5, 3, 2


def config_of(kind, **changes):
    more = {"delta_product": dict(inner=2, largest_step=2.0), "ttt": dict(inner=3)}
    rest = dict(
        num_layers=2, num_heads=2, key_width=K, value_width=V, layout="bound", normalise=False
    )
    return Config(kind, E, **rest | more.get(kind, {}) | changes)


@functools.cache
def drawn(kind, **changes):
    config = config_of(kind, **dict(changes))
    keys = jax.random.split(jax.random.key(3), 12)
    params = recurrent.init(keys[0], config)
    # biases and gates away from where they begin
    leaves, tree = jax.tree.flatten(params)
    leaves = [
        x + 0.3 * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys[1:], strict=False)
    ]
    return config, jax.tree.unflatten(tree, leaves), jax.random.normal(keys[11], (T, E))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def loop(kind, head, rows, inner=1):  # one head's states [T, k, v], from the papers' equations
    state, every, product = np.zeros((K, V)), [], np.zeros((K, V))
    moment = np.zeros((K, K))
    for u in rows:
        keys, values = (head["w_k"] @ u).reshape(-1, K), (head["w_v"] @ u).reshape(-1, V)
        raw = None if "w_step" not in head else head["w_step"] @ u + head["b_step"]
        softplus = None if raw is None else np.log1p(np.exp(raw))
        g = None if "w_gate" not in head else sigmoid(head["w_gate"] @ u + head["b_gate"])
        k, v = keys[0], values[0]
        unit = k / np.linalg.norm(k)
        if kind == "additive":
            state = state + np.outer(k, v)
        elif kind == "retention":
            state = sigmoid(head["b_gate"]) * state + np.outer(k, v)
        elif kind == "gla":
            state = np.diag(np.broadcast_to(g, K)) @ state + np.outer(k, v)
        elif kind == "ssd":
            state = np.exp(-np.exp(head["b_gate"]) * softplus) * state + softplus * np.outer(k, v)
        elif kind == "lms":
            state = state - softplus * np.outer(k, k @ state - v)
        elif kind == "longhorn":  # the new state's own error: argmin |S - S_t|² + β |Sᵀk - v|²
            state = np.linalg.solve(
                np.eye(K) + softplus * np.outer(k, k), state + softplus * np.outer(k, v)
            )
        elif kind == "delta":
            state = (np.eye(K) - sigmoid(raw) * np.outer(unit, unit)) @ state
            state = state + sigmoid(raw) * np.outer(unit, v)
        elif kind == "gated_delta":
            decayed = np.diag(np.broadcast_to(g, K)) @ state
            state = decayed - sigmoid(raw) * np.outer(unit, unit @ decayed - v)
        elif kind == "delta_product":
            for key, value, step in zip(keys, values, 2 * sigmoid(raw), strict=True):
                key = key / np.linalg.norm(key)
                state = state - step * np.outer(key, key @ state - value)
        elif kind == "ttt":
            for _ in range(inner):
                state = state - raw * np.outer(k, k @ state - v)
        elif kind == "rwkv7":
            change = np.diag(g) - np.outer(sigmoid(raw) * unit, unit)
            state = change @ state + np.outer(sigmoid(raw) * unit, v)
        elif kind == "mesa":
            moment = g * moment + sigmoid(raw) * np.outer(k, k)
            product = g * product + sigmoid(raw) * np.outer(k, v)
            penalised = moment + np.exp(head["log_penalty"]) * np.eye(K)
            state = np.linalg.solve(penalised, product)
        every.append(state)
    return np.stack(every)


def by_hand(config, params, tokens):
    stream, states = np.asarray(tokens), []
    names = [f.name for f in dataclasses.fields(params) if getattr(params, f.name) is not None]
    for layer in range(config.num_layers):
        total, of_heads = 0, []
        for h in range(config.num_heads):
            head = {name: np.asarray(getattr(params, name)[layer, h]) for name in names}
            every = loop(config.kind, head, stream, config.inner)
            read = np.einsum("tkv,tk->tv", every, stream @ head["w_q"].T)
            total = total + read @ head["w_o"].T
            of_heads.append(every)
        stream = stream + total
        states.append(of_heads)
    return stream, np.array(states)


VARIANTS = [(kind, ()) for kind in KINDS if kind != "mesa"]
VARIANTS += [("gla", (("diagonal", True),)), ("gated_delta", (("diagonal", True),))]
VARIANTS += [("mesa", (("solve", "cholesky"),))]


@pytest.mark.parametrize(("kind", "changes"), VARIANTS)
def test_a_layer_is_the_recurrence_of_its_paper(kind, changes):
    config, params, tokens = drawn(kind, **dict(changes))
    last, states = by_hand(config, params, tokens)
    found = jax.jit(recurrent.forward, static_argnums=2)(params, tokens, config)
    np.testing.assert_allclose(found.stream[-1], last, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(recurrent.states(params, tokens, config), states, atol=1e-11)


def test_both_ways_of_a_mesa_layer_are_one_regression_where_nothing_is_forgotten():
    config, params, tokens = drawn("mesa")
    kept = params.replace(b_gate=jnp.full_like(params.b_gate, jnp.inf))
    ways = [dataclasses.replace(config, solve=way) for way in ("recursive", "cholesky")]
    one, other = (recurrent.states(kept, tokens, way) for way in ways)
    np.testing.assert_allclose(one, other, atol=1e-11)
    # Control: with gates the recursive way forgets λ too.
    one, other = (recurrent.states(params, tokens, way) for way in ways)
    assert np.abs(one - other).max() > 1e-3
    numbers = recurrent.condition_numbers(kept, tokens, config)
    assert (numbers >= 1).all()
    assert (numbers[:, :, -1] > numbers[:, :, 0]).any()


def changes_of(seed, m, k, v, gates):
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(m, k))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    keys[m // 3 : m // 2] = keys[m // 3]  # keys that repeat
    steps = rng.uniform(0, 2, (m, 1))
    values, queries = rng.normal(size=(m, v)), rng.normal(size=(m, k))
    rows = gates[:, None], steps * keys, gates[:, None] * keys, steps * keys, values
    return recurrent_state.Writes(*map(jnp.asarray, rows)), jnp.asarray(queries)


@pytest.mark.parametrize("m", [64, 75, 200])
def test_chunks_are_the_scan(m):
    rng = np.random.default_rng(m)
    for gates in (np.ones(m), rng.uniform(0, 1, m), np.where(rng.random(m) < 0.2, 0.0, 0.99)):
        writes, queries = changes_of(m, m, 4, 3, gates)
        together = recurrent_state.chunked(writes, queries)
        np.testing.assert_allclose(together, recurrent_state.scanned(writes, queries), atol=1e-11)
    wrong = recurrent_state.chunked(writes.replace(write=writes.write.at[40].set(0)), queries)
    assert np.abs(wrong - together).max() > 1e-6


def test_gradients_through_chunks_are_those_through_the_scan():
    writes, queries = changes_of(0, 70, 3, 2, np.where(np.arange(70) % 9, 0.9, 0.0))
    slopes = [
        jax.grad(lambda w, way=way: (way(w, queries) ** 2).sum())(writes)
        for way in (recurrent_state.scanned, recurrent_state.chunked)
    ]
    for one, other in zip(*map(jax.tree.leaves, slopes), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_batch_of_long_prompts_runs_in_float32_where_nothing_is_erased():
    config = config_of("additive", key_width=16, value_width=16, width=32, norm=True)
    params = recurrent.init(jax.random.key(0), config, jnp.float32)
    tokens = jax.random.normal(jax.random.key(1), (3, 65, E), jnp.float32)
    batch = jax.jit(jax.vmap(lambda rows: recurrent.predict(params, rows, config)))(tokens)
    alone = [recurrent.predict(params, rows, config) for rows in tokens]
    np.testing.assert_allclose(batch, alone, rtol=1e-4)


def test_open_gates_give_the_layer_without_gates():
    for gated, plain in (("gla", "additive"), ("gated_delta", "delta"), ("retention", "additive")):
        config, params, tokens = drawn(gated)
        leaves = {f.name: getattr(params, f.name) for f in dataclasses.fields(params)}
        leaves |= {"b_gate": jnp.full_like(params.b_gate, jnp.inf)}
        bare = recurrent.Params(**leaves | {"b_gate": None, "w_gate": None})
        found = recurrent.forward(recurrent.Params(**leaves), tokens, config).stream
        expected = recurrent.forward(bare, tokens, dataclasses.replace(config, kind=plain)).stream
        np.testing.assert_array_equal(found, expected)


def test_a_normalised_read_is_divided_by_the_tokens_that_wrote():
    config, params, tokens = drawn("additive", layout="merged")
    one = dataclasses.replace(config, num_layers=1)
    first = jax.tree.map(lambda leaf: leaf[:1], params)
    plain = recurrent.forward(first, tokens, one).heads
    mean = recurrent.forward(first, tokens, dataclasses.replace(one, normalise=True)).heads
    written = np.array([*range(1, T), T - 1], float)
    np.testing.assert_allclose(mean * written[None, None, :, None], plain, atol=1e-12)


def test_a_shut_gate_leaves_the_last_token_alone():
    config, params, tokens = drawn("gated_delta")
    shut = params.replace(b_gate=jnp.full_like(params.b_gate, -jnp.inf))
    first = recurrent.states(shut, tokens, config)[0, 0, -1]
    key = params.w_k[0, 0] @ tokens[-1]
    step = sigmoid(params.w_step[0, 0] @ tokens[-1] + params.b_step[0, 0])
    expected = step[0] * jnp.outer(key / jnp.linalg.norm(key), params.w_v[0, 0] @ tokens[-1])
    np.testing.assert_allclose(first, expected, atol=1e-12)


def test_the_query_of_merged_tokens_writes_nothing():
    for kind in KINDS:
        config, params, tokens = drawn(kind, layout="merged")
        states = recurrent.states(params, tokens, config)
        np.testing.assert_array_equal(states[0, :, -1], states[0, :, -2])
    mask = jnp.zeros((2, 2))
    silent = recurrent.forward(params, tokens, config, mask)
    np.testing.assert_array_equal(silent.stream[-1], tokens)
    assert trace.predict(silent) == -tokens[-1, -1]


def test_a_state_that_overflows_is_named():
    config, params, tokens = drawn("lms")
    wild = params.replace(b_step=params.b_step + 1e200)
    with pytest.raises(ValueError, match=r"the state of layer [01], head ., .* after token [012]"):
        recurrent.states(wild, tokens, config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(kind="mamba"), "kind is 'mamba'; choose one of"),
        (dict(largest_step=2.5), "steps lie in"),
        (dict(inner=2), "delta takes one step a token"),
        (dict(num_heads=0), "the nearest valid value is 1"),
        (dict(diagonal=True), "no gate to be diagonal"),
        (dict(layout="causal"), "layout is 'causal'"),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(config_of("delta"), **changes)
    assert config_of("delta").stream_width == E


def test_calls_that_cannot_be_are_refused():
    config, params, tokens = drawn("delta")
    with pytest.raises(ValueError, match="tokens have width 4"):
        recurrent.forward(params, tokens[:, :4], config)
    with pytest.raises(TypeError, match="give floats"):
        recurrent.forward(params, jnp.ones((T, E), int), config)
    with pytest.raises(AssertionError, match="for a batch"):
        recurrent.forward(params, tokens[None], config)
    with pytest.raises(ValueError, match="only a mesa layer"):
        recurrent.condition_numbers(params, tokens, config)
    with pytest.raises(ValueError, match="layout is 'merged'"):
        recurrent.predict_prefixes(params, tokens, dataclasses.replace(config, layout="merged"))
