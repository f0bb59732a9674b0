"""A truncated model run by its factors predicts what the truncated dense one does.

Sides: ``linear_attention`` with dense truncated weights; a transformer whose key width is the rank
kept, made of the factors, and with exactly their number of parameters.
"""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from lsa_lab.analyses import clipping
from lsa_lab.models import linear_attention, transformer

SHAPES = [(1, 1, 3), (2, 2, 4)]  # L, H, d
cases = pytest.mark.parametrize("shape", SHAPES)
rates = pytest.mark.parametrize("rate", [0.0, 0.5, 0.9])
seeds = hypothesis.given(seed=st.integers(0, 2**32 - 1))
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
    found, expected = map(np.asarray, streams(dense, split(params, rate), tokens, keys))
    return np.abs(found - expected).max() / np.abs(expected).max()


@rates
@cases
@hypothesis.settings(max_examples=5)
@seeds
def test_factors_as_heads_predict_what_truncated_weights_do(shape, rate, seed):
    assert departure(seed, shape, rate) < 1e-10


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_under_every_mask(keys):
    assert departure(0, SHAPES[1], 0.5, keys=keys) < 1e-10


@rates
@cases
def test_the_number_of_parameters_is_that_of_the_factors(shape, rate):
    num_layers, num_heads, d = shape
    rank = clipping.kept_rank(d + 1, rate)
    heads = split(draw(0, shape)[0], rate)
    numbers = sum(leaf.size for leaf in jax.tree.leaves(heads))
    assert numbers == num_layers * num_heads * 2 * rank * 2 * (d + 1)


def test_a_factored_matrix_acts_as_the_truncated_one():
    rng = np.random.default_rng(0)
    matrix, rows, rate = rng.normal(size=(5, 8)), rng.normal(size=(4, 8)), 0.5
    found = clipping.apply(clipping.factor(matrix, rate), rows)
    np.testing.assert_allclose(found, rows @ clipping.truncate(matrix, rate).T, atol=1e-12)


@cases
def test_control_another_rank_predicts_something_else(shape):
    assert departure(0, shape, 0.5, dense_rate=0.75) > 1e-3
