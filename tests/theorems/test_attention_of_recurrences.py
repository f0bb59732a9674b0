"""A linear recurrence is attention whose weights follow from its raw arrays; a stack whose states
are plain sums gives interleaved prompts of opposite tasks one answer.

Gates may be 0 and keys may repeat. Nothing is added to a token of the stack but what is linear in
it. docs/theory, "Attention of a linear recurrence", "A sum binds no tokens".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from draws import draw_weights, jit_numpy, seeds
from lsa_lab.models import effective, prefixes, recurrent, recurrent_state
from lsa_lab.models.recurrent_state import Writes
from lsa_lab.models.recurrent_weights import Kind
from lsa_lab.prompts import Prompt

K, V = 4, 3
reads, states = jit_numpy(recurrent_state.reads), jit_numpy(recurrent_state.compute_states)
effective_attention, effective_states = (
    jit_numpy(function, static_argnames="values_per_token")
    for function in (effective.attention, effective.states)
)


def unrolled(queries, keys, values, step=None, gate=None, removed=None, written=None, inner=1):
    """S ← DS - βw(rᵀDS) + βkvᵀ for every value: what each token reads, and its states."""
    state, path = np.zeros((K, values.shape[1])), []
    step = np.ones(len(keys)) if step is None else np.broadcast_to(np.ravel(step), len(keys))
    gate = np.ones((1, K)) if gate is None else np.reshape(gate, (-1, np.shape(gate)[-1]))
    for t in range(len(queries)):
        state = np.broadcast_to(gate[t % len(gate)], K)[:, None] * state
        for i in range(t * inner, (t + 1) * inner):
            if removed is not None:
                direction = keys[i] if written is None else written[i]
                state = state - step[i] * np.outer(direction, removed[i] @ state)
            state = state + step[i] * np.outer(keys[i], values[i])
        path.append(state)
    return np.einsum("tk,tkv->tv", queries, path), np.stack(path)


@pytest.mark.parametrize("tokens", [9, 70])
@seeds
def test_weights_times_values_are_the_reads_of_the_recurrence(tokens, seed):
    rng = np.random.default_rng(seed)
    queries, values = rng.normal(size=(tokens, K)), rng.normal(size=(tokens, V))
    keys, removed = rng.normal(size=(2, tokens, K)) / K**0.5
    keys[tokens // 2 :] = keys[tokens // 2]
    step = rng.uniform(0, 1, (tokens, 1))
    for gate in (rng.uniform(0, 1, (tokens, 1)), rng.uniform(0, 1, (tokens, K)).round(1)):
        for taken in (None, removed):
            raw = dict(step=step, gate=gate, removed=taken)
            remove = None if taken is None else gate * removed
            found, path = unrolled(queries, keys, values, **raw)
            weights = reads(Writes(step * keys, np.eye(tokens), remove, gate), queries)
            np.testing.assert_allclose(weights @ values, found, atol=1e-12 * np.abs(found).max())
            every = states(Writes(step * keys, values, remove, gate))
            np.testing.assert_allclose(every, path, atol=1e-12 * np.abs(path).max())
    wrong, _ = unrolled(queries, keys, values, **raw, written=removed)
    assert np.abs(wrong - found).max() > 1e-6  # Control: subtracted along another direction


def raw_arrays(kind, head, rows, inner):
    """The arrays of the recurrence of a layer of a kind, and the values that are read."""
    keys = (rows @ head.w_k.T).reshape(-1, K)
    values = (rows @ head.w_v.T).reshape(len(keys), -1)
    raw = np.zeros(1) if head.w_step is None else rows @ head.w_step.T + head.b_step
    gate = None if head.w_gate is None else expit(rows @ head.w_gate.T + head.b_gate)
    if kind == "gdn2":
        values = expit(rows @ head.w_write.T + head.b_write) * values
    if kind == "ttt":
        keys, values, raw = (np.repeat(each, inner, axis=0) for each in (keys, values, raw))
    lengths = np.linalg.norm(keys, axis=1, keepdims=True)
    steps, shares, unit = np.logaddexp(0, raw), expit(raw), keys / lengths
    arrays = {
        "additive": lambda: dict(keys=keys),
        "retention": lambda: dict(keys=keys, gate=expit(head.b_gate)),
        "gla": lambda: dict(keys=keys, gate=gate),
        "ssd": lambda: dict(keys=keys, step=steps, gate=np.exp(-np.exp(head.b_gate) * steps)),
        "lms": lambda: dict(keys=keys, step=steps, removed=keys),
        "longhorn": lambda: dict(keys=keys, step=steps / (1 + steps * lengths**2), removed=keys),
        "delta": lambda: dict(keys=unit, step=shares, removed=unit),
        "gated_delta": lambda: dict(keys=unit, step=shares, removed=unit, gate=gate),
        "gdn2": lambda: dict(keys=unit, removed=shares * unit, written=unit, gate=gate),
        "rwkv7": lambda: dict(
            keys=shares * unit, removed=unit / gate, written=shares * unit, gate=gate
        ),
        "delta_product": lambda: dict(keys=unit, step=2 * shares, removed=unit),
        "ttt": lambda: dict(keys=keys, step=raw, removed=keys),
    }[kind]()
    return arrays, values


@partial(jit_numpy, static_argnums=2)
def run(params, rows, config):
    layer = recurrent.forward(params, rows, config)
    weights = recurrent.attention(params, layer, config)
    return layer.heads[0, 0], recurrent.states(params, rows, config)[0, 0], weights[0, 0]


@pytest.mark.parametrize("kind", [kind for kind in Kind.__args__ if kind != "mesa"])
def test_layers_of_this_library_read_what_their_raw_arrays_say(kind):
    rng, inner = np.random.default_rng(0), 2 if kind in ("delta_product", "ttt") else 1
    shape = dict(key_width=K, value_width=V, layout="bound", normalise=False, inner=inner)
    largest = 2.0 if kind == "delta_product" else 1.0
    config = recurrent.Config(kind, 5, **shape, largest_step=largest)
    params = draw_weights(rng, recurrent.init, config, 0.4)
    rows, head = rng.normal(size=(11, 5)), jax.tree.map(lambda leaf: leaf[0, 0], params)
    arrays, values = raw_arrays(kind, head, rows, inner)
    read, path = unrolled(rows @ head.w_q.T, values=values, **arrays, inner=inner)
    heads, every, weights = run(params, rows, config)
    np.testing.assert_allclose(heads, read @ head.w_o.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(every, path, rtol=1e-10, atol=1e-12)
    raw = effective_states(values=values, **arrays, values_per_token=inner)
    np.testing.assert_allclose(raw, path, rtol=1e-10, atol=1e-12)
    raw = effective_attention(rows @ head.w_q.T, **arrays, values_per_token=inner)
    np.testing.assert_allclose(raw.reshape(11, -1) @ values, read, rtol=1e-10, atol=1e-12)
    if kind != "ttt":  # which writes one value in two steps
        found = weights.reshape(11, -1) @ values
        np.testing.assert_allclose(found, read, rtol=1e-10, atol=1e-12)


N, D = 6, 3


@partial(jit_numpy, static_argnums=0)
def answers(config, constant, params, pair):  # [2, n+1], to both prompts
    def forward(params, rows):
        constants = jnp.broadcast_to(constant, (len(rows), 1))
        return recurrent.forward(params, jnp.concatenate([rows, constants], 1), config)

    return jax.vmap(lambda each: prefixes.predictions(forward, params, each, "interleaved"))(pair)


def answers_to_opposite_tasks(kind, layers, seed, constant=0.0):  # [2, n+1], and targets [n+1]
    sizes = dict(key_width=2, width=5, norm=True, layout="bound")
    config, rng = recurrent.Config(kind, D + 2, layers, 2, **sizes), np.random.default_rng(seed)
    params = draw_weights(rng, recurrent.init, config)
    params = params.replace(attention_norm_offset=0 * params.attention_norm_offset)
    x, w = rng.normal(size=(N + 1, D)), rng.normal(size=D)
    labels, covariates = np.stack([x @ w, -x @ w]), np.stack([x, x])
    pair = Prompt(covariates[:, :N], labels[:, :N], covariates[:, N], labels[:, N])
    return answers(config, constant, params, pair), x @ w


@pytest.mark.parametrize(("kind", "layers"), [("additive", 1), ("retention", 3)])
@seeds
def test_sums_give_one_answer_to_a_task_and_to_its_opposite(kind, layers, seed):
    predictions, targets = answers_to_opposite_tasks(kind, layers, seed)
    np.testing.assert_allclose(*predictions, rtol=1e-7, atol=1e-10)
    risk = ((predictions - np.stack([targets, -targets])) ** 2).mean(0)
    assert (risk >= targets**2 * (1 - 1e-9)).all()  # that of the answer 0


@pytest.mark.parametrize(("kind", "constant"), [("additive", 1.0), ("delta", 0.0)])
def test_control_a_constant_in_the_token_or_steps_of_a_delta_rule_tell_them_apart(kind, constant):
    predictions, _ = answers_to_opposite_tasks(kind, 2, 0, constant)
    assert np.abs(np.subtract(*predictions))[2:].max() > 1e-3 * np.abs(predictions).max()
