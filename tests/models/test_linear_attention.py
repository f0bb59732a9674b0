"""Linear attention against sums written out token by token; masks, gates, memory."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.models import blocks, linear_attention
from lsa_lab.models.trace import predict

KEYS = ["demonstrations", "all", "causal"]
forward = jit_numpy(linear_attention.forward, static_argnames=("keys", "normalise"))
attention = jit_numpy(linear_attention.attention, static_argnames="keys")


def draw(num_tokens, num_layers=2, num_heads=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    params = linear_attention.Params(*rng.normal(size=(2, num_layers, num_heads, d + 1, d + 1)) / 2)
    return params, rng.normal(size=(num_tokens, d + 1))


def readable(token, num_tokens, keys):
    """Which tokens a token may read, in words: n is the query's place."""
    n = num_tokens - 1
    demonstrations = range(n)
    if keys == "demonstrations":
        return demonstrations
    if keys == "all":
        return range(n + 1)
    return demonstrations if token == n else range(token + 1)


def written_out(params, tokens, keys, normalise):
    """The streams, from one sum over keys for each token and head."""
    w_kq, w_pv, stream = params.w_kq, params.w_pv, tokens
    num_tokens = len(stream)
    scale = 1 / (num_tokens - 1) if normalise else 1.0
    streams = [stream]
    for kq, pv in zip(w_kq, w_pv, strict=True):
        new = stream.copy()
        for t in range(num_tokens):
            for head in range(len(kq)):
                for i in readable(t, num_tokens, keys):
                    score = stream[i] @ kq[head] @ stream[t]
                    new[t] += scale * score * (pv[head] @ stream[i])
        stream = new
        streams.append(stream)
    return np.stack(streams)


@pytest.mark.parametrize(
    ("keys", "normalise", "num_tokens"), [*((keys, True, 5) for keys in KEYS), ("causal", False, 5)]
)
def test_every_token_gains_the_sum_over_the_keys_it_may_read(keys, normalise, num_tokens):
    params, tokens = draw(num_tokens)
    params = params.replace(w_pv=params.w_pv if normalise else params.w_pv / num_tokens)
    trace = forward(params, tokens, keys=keys, normalise=normalise)
    expected = written_out(params, tokens, keys, normalise)
    np.testing.assert_allclose(trace.stream, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("keys", "num_tokens", "dtype", "tolerance"),
    [  # few: by scores, and just so; by the moment
        *(("demonstrations", 3, "float64", 1e-10), ("all", 20, "float64", 1e-10)),
        *(("demonstrations", 22, "float64", 1e-10), ("all", 21, "float64", 1e-10)),
        *(("all", 3, "float32", 1e-5), ("demonstrations", 24, "float32", 1e-5)),
    ],
)
def test_wide_tokens_gain_the_same_sum_by_scores_and_by_the_moment(
    keys, num_tokens, dtype, tolerance
):
    params, tokens = draw(num_tokens, d=19)
    params = jax.tree.map(lambda leaf: leaf / 5, params)
    expected = written_out(params, tokens, keys, True)
    narrow = jax.tree.map(lambda leaf: leaf.astype(dtype), (params, tokens))
    trace = forward(*narrow, keys=keys)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(trace.stream, expected, rtol=tolerance, atol=tolerance * scale)
    program = str(
        jax.make_jaxpr(functools.partial(linear_attention.forward, keys=keys))(params, tokens)
    )
    num_keys = num_tokens if keys == "all" else num_tokens - 1
    assert (f"[3,{num_tokens},{num_keys}]" in program) == (num_keys <= 20)


@pytest.mark.parametrize("keys", KEYS)
def test_only_readable_keys_have_attention(keys):
    params, tokens = draw(6)
    weights = attention(params, forward(params, tokens, keys=keys), keys=keys)
    allowed = np.array([[i in readable(t, 6, keys) for i in range(6)] for t in range(6)])
    np.testing.assert_array_equal(linear_attention.key_mask(keys, 6)[0, 0], allowed)
    np.testing.assert_array_equal(weights != 0, np.broadcast_to(allowed, weights.shape))


@pytest.mark.parametrize("keys", ["demonstrations", "causal"])
def test_closing_a_gate_removes_the_head_and_nothing_else(keys):
    params, tokens = draw(6)
    mask = np.array([[1.0, 0, 1], [1, 1, 0]])
    gated = forward(params, tokens, keys=keys, head_mask=mask)
    without = params.replace(w_pv=params.w_pv * mask[:, :, None, None])
    expected = forward(without, tokens, keys=keys)
    np.testing.assert_allclose(gated.stream, expected.stream, rtol=1e-12)
    assert not gated.heads[0, 1].any()
    assert gated.heads[1, 1].any()
    open_gates = forward(params, tokens, keys=keys, head_mask=np.ones((2, 3)))
    full = forward(params, tokens, keys=keys)
    np.testing.assert_array_equal(open_gates.stream, full.stream)
    assert np.abs(full.stream - gated.stream).max() > 1e-3


def test_a_long_prompt_gives_the_gradient_of_a_short_one(swap):
    params, tokens = draw(40)

    def gradient():
        def loss(params):
            return predict(linear_attention.forward(params, tokens, keys="causal")) ** 2

        return jax.jit(jax.grad(loss))(params)

    short = gradient()
    swap(blocks, "LONG", 39)
    same = functools.partial(np.testing.assert_allclose, rtol=1e-10)
    jax.tree.map(same, gradient(), short)


def test_the_gradient_of_a_prompt_of_4096_needs_32_mebibytes():
    params = linear_attention.init(jax.random.key(0), 4, 4, d=20, dtype=jnp.float32)
    tokens = jnp.zeros((4097, 21), jnp.float32)

    def prediction(params, tokens):
        return predict(linear_attention.forward(params, tokens, keys="causal"))

    compiled = jax.jit(jax.grad(prediction, (0, 1))).lower(params, tokens).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= 32 * 2**20
