"""A linear recurrence is attention whose weights follow from its raw arrays.

docs/theory, "Attention of a linear recurrence"; classical, the forms in ``effective``. Sides:
recurrences unrolled in NumPy, and the layers of ``recurrent``; ``effective.attention`` times the
values, and ``effective.states``. Hypotheses: none; gates may be 0 and keys may repeat.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import effective, recurrent, recurrent_state
from lsa_lab.models.recurrent_weights import Kind

K, V = 4, 3
attention = jax.jit(effective.attention, static_argnames="values_per_token")
states = jax.jit(effective.states, static_argnames="values_per_token")


def unrolled(queries, keys, values, step, gate, removed, written, per_token):
    """S ← DS - βw(rᵀDS) + βkvᵀ for every token; its reads and states."""
    state, reads, every = np.zeros((K, values.shape[1])), [], []
    for t, query in enumerate(queries):
        state = np.broadcast_to(gate[t], K)[:, None] * state
        for i in range(t * per_token, (t + 1) * per_token):
            if removed is not None:
                state = state - step[i] * np.outer(written[i], removed[i] @ state)
            state = state + step[i] * np.outer(keys[i], values[i])
        reads.append(query @ state)
        every.append(state)
    return np.stack(reads), np.stack(every)


@pytest.mark.parametrize(("tokens", "per_token"), [(9, 1), (70, 1), (6, 3)])
@seeds
def test_weights_times_values_are_the_reads_of_the_recurrence(tokens, per_token, seed):
    rng, count = np.random.default_rng(seed), tokens * per_token
    queries, values = rng.normal(size=(tokens, K)), rng.normal(size=(count, V))
    keys, removed, written = rng.normal(size=(3, count, K)) / K**0.5
    keys[count // 2 :] = keys[count // 2]
    step = rng.uniform(0, 1, count)
    for gate in (rng.uniform(0, 1, (tokens, 1)), rng.uniform(0, 1, (tokens, K)).round(1)):
        for taken in ((None, None), (removed, None), (removed, written)):
            raw = dict(step=step, gate=gate, removed=taken[0], written=taken[1])
            both = taken[0], taken[0] if taken[1] is None else taken[1]
            reads, every = unrolled(queries, keys, values, step, gate, *both, per_token)
            weights = attention(queries, keys, **raw, values_per_token=per_token)
            weights = np.asarray(weights).reshape(tokens, tokens, per_token)
            found = np.einsum("tij,ijv->tv", weights, values.reshape(tokens, per_token, V))
            size = np.abs(reads).max()
            np.testing.assert_allclose(found, reads, atol=1e-12 * size)
            found = states(keys, values, **raw, values_per_token=per_token)
            np.testing.assert_allclose(found, every, atol=1e-12 * np.abs(every).max())
    wrong = attention(queries, keys, **raw | dict(written=keys), values_per_token=per_token)
    wrong = np.asarray(wrong).reshape(weights.shape)
    assert np.abs(wrong - weights).max() > 1e-6  # Control: taken away from elsewhere


def raw_arrays(kind, head, rows, inner):
    """What a layer of a kind hands in, and the values that are read."""
    sigmoid, softplus = jax.nn.sigmoid, jax.nn.softplus
    keys = (rows @ head.w_k.T).reshape(-1, K)
    unit, values = recurrent_state.unit_rows(keys), (rows @ head.w_v.T).reshape(len(keys), -1)
    raw = None if head.w_step is None else rows @ head.w_step.T + head.b_step[None]
    gate = None if head.w_gate is None else sigmoid(rows @ head.w_gate.T + head.b_gate[None])
    arrays = {
        "additive": lambda: dict(keys=keys),
        "retention": lambda: dict(keys=keys, gate=sigmoid(head.b_gate)),
        "gla": lambda: dict(keys=keys, gate=gate),
        "ssd": lambda: dict(
            keys=keys, step=softplus(raw), gate=jnp.exp(-jnp.exp(head.b_gate)[None] * softplus(raw))
        ),
        "lms": lambda: dict(keys=keys, step=softplus(raw), removed=keys),
        "longhorn": lambda: dict(
            keys=keys,
            step=softplus(raw) / (1 + softplus(raw) * (keys**2).sum(1, keepdims=True)),
            removed=keys,
        ),
        "delta": lambda: dict(keys=unit, step=sigmoid(raw), removed=unit),
        "gated_delta": lambda: dict(keys=unit, step=sigmoid(raw), removed=unit, gate=gate),
        "gdn2": lambda: dict(keys=unit, removed=sigmoid(raw) * unit, written=unit, gate=gate),
        "rwkv7": lambda: dict(
            keys=sigmoid(raw) * unit, removed=unit / gate, written=sigmoid(raw) * unit, gate=gate
        ),
        "delta_product": lambda: dict(
            keys=unit, step=2 * sigmoid(raw).reshape(-1), removed=unit, values_per_token=inner
        ),
        "ttt": lambda: dict(
            keys=jnp.repeat(keys, inner, 0),
            step=jnp.repeat(raw, inner, 0),
            removed=jnp.repeat(keys, inner, 0),
            values_per_token=inner,
        ),
    }[kind]()
    if kind == "gdn2":
        values = sigmoid(rows @ head.w_write.T + head.b_write[None]) * values
    return arrays, jnp.repeat(values, inner, 0) if kind == "ttt" else values


@pytest.mark.parametrize("kind", [kind for kind in Kind.__args__ if kind != "mesa"])
def test_layers_of_this_library_read_what_their_raw_arrays_say(kind):
    rng, inner = np.random.default_rng(0), 2 if kind in ("delta_product", "ttt") else 1
    config = recurrent.Config(
        kind, 5, key_width=K, value_width=V, layout="bound", normalise=False, inner=inner,
        largest_step=2.0 if kind == "delta_product" else 1.0,
    )  # fmt: skip
    shapes = jax.eval_shape(recurrent.init, jax.random.key(0), config)
    params = jax.tree.map(lambda leaf: 0.4 * rng.normal(size=leaf.shape), shapes)
    rows = rng.normal(size=(11, 5))

    @jit_numpy
    def both(params):
        head = jax.tree.map(lambda leaf: leaf[0, 0], params)
        arrays, values = raw_arrays(kind, head, rows, inner)
        weights = effective.attention(rows @ head.w_q.T, **arrays)
        every = effective.states(arrays.pop("keys"), values, **arrays)
        per_token = weights.reshape(11, 11, -1), values.reshape(11, -1, V)
        read = jnp.einsum("tij,ijv->tv", *per_token) @ head.w_o.T
        layer = recurrent.forward(params, rows, config)
        return (read, every), (layer.heads[0, 0], recurrent.states(params, rows, config)[0, 0])

    for found, stated in zip(*both(params), strict=True):
        np.testing.assert_allclose(found, stated, rtol=1e-10, atol=1e-12)


def test_arrays_that_do_not_fit_are_refused():
    queries, keys = np.ones((4, 2)), np.ones((4, 2))
    calls = [
        (dict(gate=np.ones(3)), r"gate has shape \(3,\)"),
        (dict(step=np.ones(3)), r"step has shape \(3,\)"),
        (dict(removed=np.ones((4, 3))), r"removed has shape \(4, 3\)"),
        (dict(written=keys), "written without removed"),
        (dict(values_per_token=2), "keys have 4 rows and values 8"),
    ]
    for more, words in calls:
        with pytest.raises(ValueError, match=words):
            effective.attention(queries, keys, **more)
    with pytest.raises(AssertionError, match="for heads"):
        effective.attention(queries[None], keys)
