"""A2's Lemma 1: a linear head takes h to h + ΔW h, and the rank of ΔW is limited.

docs/theory, "The implicit update". Sides: the forward pass of a factored transformer; the sum of
outer products.
"""

import functools

import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab.analyses import implicit_gd
from lsa_lab.models import transformer

SHAPES = [(2, 5, 6, 1), (9, 3, 2, 2)]  # n, d, k, H
shapes = pytest.mark.parametrize("shape", SHAPES)


def draw(seed, shape):
    n, d, k, num_heads = shape
    rng = np.random.default_rng(seed)
    tokens = rng.normal(size=(n + 1, d + 1))
    w_q, w_k, w_v = (rng.normal(size=(1, num_heads, k, d + 1)) for _ in range(3))
    return transformer.Params(w_q, w_k, w_v, rng.normal(size=(1, num_heads, d + 1, k))), tokens


@functools.partial(jax.jit, static_argnames="keys")
def run(params, tokens, keys):
    """The stream of one layer without 1/n, as in A2."""
    _, num_heads, k, e = params.w_q.shape
    config = transformer.Config(e, 1, num_heads, k, kernel="linear", keys=keys, normalise=False)
    return transformer.forward(params, tokens, config).stream


@jax.jit
def updates_of(params, tokens):  # [H, e, e]
    """ΔW of each head, the query being no demonstration."""
    head = jax.vmap(implicit_gd.implicit_update, (0, 0, 0, None))
    return head(params.w_o[0] @ params.w_v[0], params.w_k[0], params.w_q[0], tokens[:-1])


def departure(seed, shape, keys="demonstrations"):
    """max |h + ΔW h - ĥ| over tokens, relative to the stream."""
    params, tokens = draw(seed, shape)
    before, after = np.asarray(run(params, tokens, keys))
    stated = before + before @ np.asarray(updates_of(params, tokens)).sum(0).T
    return np.abs(stated - after).max() / np.abs(after).max()


def ranks(updates):
    return implicit_gd.ranks(implicit_gd.Trajectory(None, updates, None))


@shapes
@seeds
def test_a_linear_layer_is_an_implicit_update_of_every_token(shape, seed):
    assert departure(seed, shape) < 1e-10


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_control_other_masks_have_another_update(keys):
    assert departure(0, SHAPES[0], keys) > 1e-3


@shapes
@seeds
def test_the_rank_is_limited_by_demonstrations_and_weights(shape, seed):
    n, d, k, _ = shape
    assert (ranks(updates_of(*draw(seed, shape))) <= min(n, d + 1, k)).all()


def test_control_two_heads_together_exceed_the_limit_of_one():
    n, d, k, _ = SHAPES[1]
    updates = updates_of(*draw(0, SHAPES[1]))
    assert ranks(updates.sum(0, keepdims=True)) > min(n, d + 1, k)
