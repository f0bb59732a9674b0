"""Linear attention: the choice of its form, gates, and the gradients of long prompts."""

import functools

import jax
import numpy as np
import pytest

from draws import draw_stack, forward, jit_numpy
from lsa_lab.models import blocks, linear_attention
from lsa_lab.models.trace import predict


def draw(num_tokens, d=2):
    rng = np.random.default_rng(0)
    return draw_stack(rng, 2, 3, d + 1, 0.5), rng.normal(size=(num_tokens, d + 1))


@pytest.mark.parametrize(
    ("keys", "num_tokens", "by_scores"),
    [("demonstrations", 21, True), ("all", 21, False), ("all", 20, True)],
)
def test_up_to_e_keys_are_read_by_their_scores_and_more_by_their_moment(
    keys, num_tokens, by_scores
):
    double = jax.tree.map(lambda leaf: leaf / 5, draw(num_tokens, d=19))
    single = jax.tree.map(lambda leaf: leaf.astype(np.float32), double)
    stream, expected = (forward(*case, keys=keys).stream for case in (single, double))
    assert stream.dtype == np.float32
    np.testing.assert_allclose(stream, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    run = functools.partial(linear_attention.forward, keys=keys)
    scores = f"[3,{num_tokens},{num_tokens - (keys == 'demonstrations')}]"
    assert (scores in str(jax.make_jaxpr(run)(*double))) == by_scores


@pytest.mark.parametrize("keys", ["demonstrations", "causal"])
def test_closing_a_gate_removes_the_head_and_nothing_else(keys):
    params, tokens = draw(6)
    mask = np.array([[1.0, 0, 1], [1, 1, 0]])
    gated, opened = (
        forward(params, tokens, keys=keys, head_mask=gates) for gates in (mask, np.ones((2, 3)))
    )
    without = params.replace(w_pv=params.w_pv * mask[:, :, None, None])
    np.testing.assert_allclose(gated.stream, forward(without, tokens, keys=keys).stream, rtol=1e-12)
    np.testing.assert_array_equal(gated.heads.any((2, 3)), mask > 0)
    np.testing.assert_array_equal(opened.stream, forward(params, tokens, keys=keys).stream)
    assert np.abs(opened.stream - gated.stream).max() > 1e-3


def test_a_long_prompt_gives_the_gradient_of_a_short_one(monkeypatch):
    params, tokens = draw(40)

    def gradient(normalise):  # of two programs: the form is chosen while one is traced
        def loss(params):
            trace = linear_attention.forward(params, tokens, keys="causal", normalise=normalise)
            return predict(trace) ** 2

        scale = 1 if normalise else 1 / 39
        case = params.replace(w_pv=scale * params.w_pv)
        found = jit_numpy(jax.grad(loss))(case)
        return found.replace(w_pv=scale * found.w_pv)

    short = gradient(normalise=True)
    monkeypatch.setattr(blocks, "LONG", 39)
    same = functools.partial(np.testing.assert_allclose, rtol=1e-10)
    jax.tree.map(same, gradient(normalise=False), short)
