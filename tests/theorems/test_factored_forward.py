"""A truncated model run by its factors predicts what the truncated dense one does.

W_r = (U_r S_r) V_rᵀ, so that r columns of each factor do the work of the matrix. Sides:
``linear_attention`` with dense truncated weights; a transformer whose key width is the rank kept,
made of the factors.
"""

import functools

import hypothesis
import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab.analyses import clipping
from lsa_lab.models import linear_attention, transformer

SHAPE = (2, 2, 4)  # L, H, d
rates = pytest.mark.parametrize("rate", [0.5, 0.9])
split = jax.jit(clipping.as_heads, static_argnums=1)
cut = jax.jit(lambda params, rate: jax.tree.map(lambda w: clipping.truncate(w, rate), params))


def draw(seed, shape):
    num_layers, num_heads, d = shape
    rng = np.random.default_rng(seed)
    w_kq, w_pv = 0.4 * rng.normal(size=(2, num_layers, num_heads, d + 1, d + 1))
    return linear_attention.Params(w_kq, w_pv), rng.normal(size=(9, d + 1))


@functools.partial(jax.jit, static_argnames="keys")
def streams(dense, heads, tokens, keys):
    num_layers, num_heads, rank, e = heads.w_q.shape
    config = transformer.Config(e, num_layers, num_heads, rank, kernel="linear", keys=keys)
    factored = transformer.forward(heads, tokens, config).stream
    return linear_attention.forward(dense, tokens, keys=keys).stream, factored


def departure(seed, shape, rate, dense_rate=None, keys="demonstrations"):
    params, tokens = draw(seed, shape)
    dense = cut(params, rate if dense_rate is None else dense_rate)
    stream, expected = map(np.asarray, streams(dense, split(params, rate), tokens, keys))
    return np.abs(stream - expected).max() / np.abs(expected).max()


@rates
@hypothesis.settings(max_examples=5)
@seeds
def test_factors_as_heads_predict_what_truncated_weights_do(rate, seed):
    assert departure(seed, SHAPE, rate) < 1e-10


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_they_do_so_under_every_mask(keys):
    assert departure(0, SHAPE, 0.5, keys=keys) < 1e-10


def test_control_another_rank_predicts_something_else():
    assert departure(0, SHAPE, 0.5, dense_rate=0.75) > 1e-3
