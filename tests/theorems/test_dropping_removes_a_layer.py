"""Without W_V, W_K or W_Q a layer of linear attention is not there: G_t = 0.

docs/theory, "Dropping removes a layer". Sides: the forward pass with one matrix dropped; the
forward pass of the other layers alone.
"""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from lsa_lab.analyses import clipping, implicit_gd
from lsa_lab.models import linear_attention, transformer
from lsa_lab.prompts import Prompt

N, D, L, HEADS, K = 7, 3, 3, 2, 2
MERGED = ("w_kq", "w_pv")
FACTORED = ("w_q", "w_k", "w_v", "w_o")
follow = jax.jit(implicit_gd.trajectory)


def draw(seed, kind):
    rng = np.random.default_rng(seed)
    tokens, e = rng.normal(size=(N + 1, D + 1)), D + 1
    if kind == "merged":
        w_kq, w_pv = 0.3 * rng.normal(size=(2, L, HEADS, e, e))
        return linear_attention.Params(w_kq, w_pv), tokens
    w_q, w_k, w_v = 0.5 * rng.normal(size=(3, L, HEADS, K, e))
    return transformer.Params(w_q, w_k, w_v, 0.5 * rng.normal(size=(L, HEADS, e, K))), tokens


@functools.partial(jax.jit, static_argnames="kind")
def last(params, tokens, kind):
    """The stream after the last layer."""
    if kind == "merged":
        return linear_attention.forward(params, tokens).stream[-1]
    config = transformer.Config(D + 1, params.w_q.shape[0], HEADS, K, kernel=kind)
    return transformer.forward(params, tokens, config).stream[-1]


pieces_of = jax.jit(clipping.by_singular_value, static_argnums=1)


def without(params, t, name, rate):
    pieces = pieces_of(params, "attention")
    edit = clipping.Edit(t, name, rate)
    return clipping.rebuild(params, pieces, clipping.keep_masks(params, pieces, edit))


def departure(seed, kind, t, name, rate=clipping.DROP):
    params, tokens = draw(seed, kind)
    rest = jax.tree.map(lambda leaf: leaf[np.arange(L) != t], params)
    models = (without(params, t, name, rate), rest)
    edited, expected = (np.asarray(last(model, tokens, kind)) for model in models)
    return np.abs(edited - expected).max()


CASES = [("merged", name) for name in MERGED] + [("linear", name) for name in FACTORED]


@pytest.mark.parametrize(("kind", "name"), CASES)
@hypothesis.given(seed=st.integers(0, 2**32 - 1), t=st.integers(0, L - 1))
def test_dropping_any_one_matrix_removes_the_layer(kind, name, seed, t):
    assert departure(seed, kind, t, name) < 1e-10


@pytest.mark.parametrize("t", range(L))
def test_the_update_of_that_layer_is_zero(t):
    params, tokens = draw(0, "merged")
    prompt = Prompt(tokens[:-1, :-1], tokens[:-1, -1], tokens[-1, :-1], tokens[-1, -1])
    for name in MERGED:
        sizes = implicit_gd.norms(follow(without(params, t, name, clipping.DROP), prompt))
        assert [size == 0 for size in sizes] == [layer == t for layer in range(L)]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_control_the_highest_rate_is_not_a_drop(kind, name):
    assert departure(0, kind, 1, name, 0.999) > 1e-3


@pytest.mark.parametrize("name", ["w_q", "w_k"])
def test_control_softmax_without_scores_still_averages(name):
    assert departure(0, "softmax", 1, name) > 1e-3
    assert departure(0, "softmax", 1, "w_v") < 1e-10
