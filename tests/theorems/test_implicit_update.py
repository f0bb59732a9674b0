"""A linear head takes h to h + ΔW h, and the rank of ΔW is limited by demonstrations and weights.

Papers: A2, Lemma 1. docs/theory, "The implicit update".
"""

import functools

import numpy as np
import pytest

from draws import draw_transformer, jit_numpy, seeds
from lsa_lab.models import transformer

SHAPES = [(2, 5, 6, 1), (9, 3, 2, 2), (1, 1, 1, 1)]  # n, d, k, H
shapes = pytest.mark.parametrize("shape", SHAPES)


def draw(seed, shape):
    (n, d, k, num_heads), rng = shape, np.random.default_rng(seed)
    return draw_transformer(rng, 1, num_heads, k, d + 1), rng.normal(size=(n + 1, d + 1))


@functools.partial(jit_numpy, static_argnames="keys")
def run(params, tokens, keys):  # the stream of one layer without 1/n, as in A2
    _, num_heads, k, e = params.w_q.shape
    config = transformer.Config(e, 1, num_heads, k, kernel="linear", keys=keys, normalise=False)
    return transformer.forward(params, tokens, config).stream


def updates(params, tokens):  # [H, e, e], the query being no demonstration
    """ΔW = (Σ_i W_O W_V h_i ⊗ W_K h_i) W_Q of every head."""
    w_q, w_k, w_v, w_o = (w[0] for w in (params.w_q, params.w_k, params.w_v, params.w_o))
    rows = tokens[:-1]
    return w_o @ w_v @ rows.T @ rows @ w_k.swapaxes(1, 2) @ w_q


def error(seed, shape, keys="demonstrations"):  # max |h + ΔW h - ĥ|, relative
    params, tokens = draw(seed, shape)
    before, after = run(params, tokens, keys)
    stated = before + before @ updates(params, tokens).sum(0).T
    return np.abs(stated - after).max() / np.abs(after).max()


def ranks(updates):
    return np.linalg.matrix_rank(updates, rtol=10 * updates.shape[-1] * np.finfo(float).eps)


@shapes
@seeds
def test_a_linear_layer_is_an_implicit_update_of_every_token_of_limited_rank(shape, seed):
    (n, d, k, _), changes = shape, updates(*draw(seed, shape))
    assert error(seed, shape) < 1e-10
    assert (ranks(changes) <= min(n, d + 1, k)).all()


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_control_other_masks_have_another_update(keys):
    assert error(0, SHAPES[0], keys) > 1e-3


def test_control_two_heads_together_exceed_the_limit_of_one():
    changes = updates(*draw(0, SHAPES[1]))
    assert ranks(changes.sum(0, keepdims=True)) > 2
