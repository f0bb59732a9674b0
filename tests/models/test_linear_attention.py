"""Linear attention against sums written out token by token; masks, gates, memory."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.models import blocks, linear_attention
from lsa_lab.models.trace import predict


def written_out(params, tokens, num_keys):
    """The streams; the first tokens are the keys."""
    streams = [tokens]
    for w_kq, w_pv in zip(params.w_kq, params.w_pv, strict=True):
        rows, keys = streams[-1], streams[-1][:num_keys]
        reads = [rows @ kq.T @ keys.T @ keys @ pv.T for kq, pv in zip(w_kq, w_pv, strict=True)]
        streams.append(rows + np.sum(reads, 0) / (len(rows) - 1))
    return np.stack(streams)


forward = jit_numpy(linear_attention.forward, static_argnames=("keys", "normalise"))


def draw(num_tokens, num_layers=2, num_heads=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    params = linear_attention.Params(*rng.normal(size=(2, num_layers, num_heads, d + 1, d + 1)) / 2)
    return params, rng.normal(size=(num_tokens, d + 1))


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
    num_keys = num_tokens if keys == "all" else num_tokens - 1
    expected = written_out(params, tokens, num_keys)
    narrow = jax.tree.map(lambda leaf: leaf.astype(dtype), (params, tokens))
    trace = forward(*narrow, keys=keys)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(trace.stream, expected, rtol=tolerance, atol=tolerance * scale)
    program = str(
        jax.make_jaxpr(functools.partial(linear_attention.forward, keys=keys))(params, tokens)
    )
    assert (f"[3,{num_tokens},{num_keys}]" in program) == (num_keys <= 20)


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
