"""Without W_V, W_K or W_Q a layer of linear attention is not there: G_t = 0.

docs/theory, "Dropping removes a layer".
"""

import functools

import jax
import numpy as np
import pytest

from draws import draw_stack, draw_transformer, jit_numpy, seeds
from lsa_lab.analyses import clipping, implicit_gd
from lsa_lab.models import linear_attention, transformer
from lsa_lab.prompts import Prompt

N, D, L, HEADS, K = 7, 3, 3, 2, 2
clip = jit_numpy(clipping.clip, static_argnums=(1, 2, 3))
follow = jit_numpy(implicit_gd.trajectory)


def draw(seed, kind):
    rng = np.random.default_rng(seed)
    tokens, e = rng.normal(size=(N + 1, D + 1)), D + 1
    if kind == "merged":
        return draw_stack(rng, L, HEADS, e), tokens
    return draw_transformer(rng, L, HEADS, K, e, 0.5), tokens


@functools.partial(jit_numpy, static_argnames="kind")
def last(params, tokens, kind):  # the stream after the last layer
    if kind == "merged":
        return linear_attention.forward(params, tokens).stream[-1]
    config = transformer.Config(D + 1, params.w_q.shape[0], HEADS, K, kernel=kind)
    return transformer.forward(params, tokens, config).stream[-1]


def difference(seed, kind, name, rate=clipping.DROP):
    """How far a clipped layer is from a stack without the layer."""
    (params, tokens), t = draw(seed, kind), seed % L
    others = jax.tree.map(lambda leaf: leaf[np.arange(L) != t], params)
    edited = last(clip(params, t, name, rate), tokens, kind)
    return np.abs(edited - last(others, tokens, kind)).max()


@pytest.mark.parametrize(
    ("kind", "name"),
    [("merged", "w_kq"), ("merged", "w_pv")]
    + [("linear", name) for name in ("w_q", "w_k", "w_v", "w_o")],
)
@seeds
def test_dropping_any_one_matrix_removes_the_layer(kind, name, seed):
    assert difference(seed, kind, name) < 1e-10
    if seed == 0:  # Control: the highest rate is not a drop
        assert difference(0, kind, name, 0.999) > 1e-3


@pytest.mark.parametrize("name", ["w_kq", "w_pv"])
def test_the_update_of_that_layer_is_zero(name):
    params, rows = draw(0, "merged")
    prompt = Prompt(rows[:-1, :-1], rows[:-1, -1], rows[-1, :-1], rows[-1, -1])
    for t in range(L):
        updates = follow(clip(params, t, name, clipping.DROP), prompt).updates
        np.testing.assert_array_equal((updates == 0).all((1, 2)), np.arange(L) == t)


def test_control_softmax_without_scores_still_averages():
    assert min(difference(0, "softmax", name) for name in ("w_q", "w_k")) > 1e-3
    assert difference(0, "softmax", "w_v") < 1e-10
