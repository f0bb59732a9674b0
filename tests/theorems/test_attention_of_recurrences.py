"""A linear recurrence is attention whose weights follow from its raw arrays.

Gates may be 0 and keys may repeat. docs/theory, "Attention of a linear recurrence".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_weights, jit_numpy, seeds
from lsa_lab.models import effective, recurrent, recurrent_state
from lsa_lab.models.recurrent_weights import Kind

K, V = 4, 3
attention = jit_numpy(effective.attention, static_argnames="values_per_token")
states = jit_numpy(effective.states, static_argnames="values_per_token")


def unrolled(queries, keys, values, step, gate, removed, written, per_token):
    """S ← DS - βw(rᵀDS) + βkvᵀ for every value: what each token reads, and its states."""
    state, path = np.zeros((K, values.shape[1])), []
    for t in range(len(queries)):
        state = np.broadcast_to(gate[t], K)[:, None] * state
        for i in range(t * per_token, (t + 1) * per_token):
            if removed is not None:
                direction = removed[i] if written is None else written[i]
                state = state - step[i] * np.outer(direction, removed[i] @ state)
            state = state + step[i] * np.outer(keys[i], values[i])
        path.append(state)
    return np.einsum("tk,tkv->tv", queries, path), np.stack(path)


@pytest.mark.parametrize(("tokens", "per_token"), [(9, 1), (70, 1), (6, 3)])
@seeds
def test_weights_times_values_are_the_reads_of_the_recurrence(tokens, per_token, seed):
    rng, count = np.random.default_rng(seed), tokens * per_token
    queries, values = rng.normal(size=(tokens, K)), rng.normal(size=(count, V))
    keys, removed, written = rng.normal(size=(3, count, K)) / K**0.5
    keys[count // 2 :] = keys[count // 2]
    step, per_value = rng.uniform(0, 1, count), values.reshape(tokens, per_token, V)
    read = partial(attention, queries, keys, values_per_token=per_token)
    for gate in (rng.uniform(0, 1, (tokens, 1)), rng.uniform(0, 1, (tokens, K)).round(1)):
        for taken in ((None, None), (removed, None), (removed, written)):
            raw = dict(step=step, gate=gate, removed=taken[0], written=taken[1])
            reads, path = unrolled(queries, keys, values, **raw, per_token=per_token)
            weights = read(**raw).reshape(tokens, tokens, per_token)
            found = np.einsum("tij,ijv->tv", weights, per_value)
            np.testing.assert_allclose(found, reads, atol=1e-12 * np.abs(reads).max())
            found = states(keys, values, **raw, values_per_token=per_token)
            np.testing.assert_allclose(found, path, atol=1e-12 * np.abs(path).max())
    wrong = read(**raw | dict(written=keys)).reshape(weights.shape)
    assert np.abs(wrong - weights).max() > 1e-6  # Control: subtracted along another direction


def raw_arrays(kind, head, rows, inner):
    """What a layer of a kind passes to ``effective``, and the values that are read."""
    sigmoid, softplus, repeat = jax.nn.sigmoid, jax.nn.softplus, partial(jnp.repeat, repeats=inner)
    keys = (rows @ head.w_k.T).reshape(-1, K)
    unit, values = recurrent_state.unit_rows(keys), (rows @ head.w_v.T).reshape(len(keys), -1)
    raw = jnp.zeros(1) if head.w_step is None else rows @ head.w_step.T + head.b_step[None]
    gate = None if head.w_gate is None else sigmoid(rows @ head.w_gate.T + head.b_gate[None])
    if kind == "gdn2":
        values = sigmoid(rows @ head.w_write.T + head.b_write[None]) * values
    if kind == "ttt":
        keys, values, raw = (repeat(each, axis=0) for each in (keys, values, raw))
    steps, shares = softplus(raw), sigmoid(raw)
    arrays = {
        "additive": lambda: dict(keys=keys),
        "retention": lambda: dict(keys=keys, gate=sigmoid(head.b_gate)),
        "gla": lambda: dict(keys=keys, gate=gate),
        "ssd": lambda: dict(
            keys=keys, step=steps, gate=jnp.exp(-jnp.exp(head.b_gate)[None] * steps)
        ),
        "lms": lambda: dict(keys=keys, step=steps, removed=keys),
        "longhorn": lambda: dict(
            keys=keys, step=steps / (1 + steps * (keys**2).sum(1, keepdims=True)), removed=keys
        ),
        "delta": lambda: dict(keys=unit, step=shares, removed=unit),
        "gated_delta": lambda: dict(keys=unit, step=shares, removed=unit, gate=gate),
        "gdn2": lambda: dict(keys=unit, removed=shares * unit, written=unit, gate=gate),
        "rwkv7": lambda: dict(
            keys=shares * unit, removed=unit / gate, written=shares * unit, gate=gate
        ),
        "delta_product": lambda: dict(keys=unit, step=2 * shares.reshape(-1), removed=unit),
        "ttt": lambda: dict(keys=keys, step=raw, removed=keys),
    }[kind]()
    return arrays | dict(values_per_token=inner), values


@pytest.mark.parametrize("kind", [kind for kind in Kind.__args__ if kind != "mesa"])
def test_layers_of_this_library_read_what_their_raw_arrays_say(kind):
    rng, inner = np.random.default_rng(0), 2 if kind in ("delta_product", "ttt") else 1
    shape = dict(key_width=K, value_width=V, layout="bound", normalise=False, inner=inner)
    largest = 2.0 if kind == "delta_product" else 1.0
    config = recurrent.Config(kind, 5, **shape, largest_step=largest)
    params = draw_weights(rng, recurrent.init, config, 0.4)
    rows = rng.normal(size=(11, 5))

    @jit_numpy
    def compare(params):
        head = jax.tree.map(lambda leaf: leaf[0, 0], params)
        arrays, values = raw_arrays(kind, head, rows, inner)
        weights = effective.attention(rows @ head.w_q.T, **arrays)
        every = effective.states(arrays.pop("keys"), values, **arrays)
        per_token = weights.reshape(11, 11, -1), values.reshape(11, -1, V)
        read = jnp.einsum("tij,ijv->tv", *per_token) @ head.w_o.T
        layer = recurrent.forward(params, rows, config)
        return (read, every), (layer.heads[0, 0], recurrent.states(params, rows, config)[0, 0])

    for found, stated in zip(*compare(params), strict=True):
        np.testing.assert_allclose(found, stated, rtol=1e-10, atol=1e-12)
