"""A2's Remark 4 on norms: before attention a norm bounds the update, whatever the stream's size.

    |Σ_h W_V^h u_i ⊗ W_K^h u_i W_Q^h / n|_F ≤ max_i |u_i|² Σ_h |W_V^h|₂ |(W_K^h)ᵀ W_Q^h|_F,
    |u_i| ≤ max|s| √D + |o|   for u = norm(h) with scales s and offsets o.

Sides: the network's write to a query, for streams of any size; the bound from weights alone.
docs/theory, "A norm bounds the update".
"""

import dataclasses

import jax
import numpy as np
import pytest

from draws import seed_and
from lsa_lab.models import transformer

D, HEADS, N = 6, 2, 9
seeds = seed_and(size=(1e-3, 1e3))
CONFIG = transformer.Config(D, 1, HEADS, 4, kernel="linear", norm=True)
forward = jax.jit(transformer.forward, static_argnames="config")


def draw(seed, norm=True):
    """Random weights, scales and offsets, and tokens."""
    config, rng = dataclasses.replace(CONFIG, norm=norm), np.random.default_rng(seed)
    shapes = jax.eval_shape(transformer.init, jax.random.key(0), config)
    params = jax.tree.map(lambda leaf: 0.5 * rng.normal(size=leaf.shape), shapes)
    return config, params, rng.normal(size=(N + 1, D))


def written(seed, size, norm=True):
    return written_by(*draw(seed, norm), size)


def written_by(config, params, tokens, size):  # -> |what the layer adds to the query|
    stream = np.asarray(forward(params, size * tokens, config=config).stream)
    return np.linalg.norm(stream[1, -1] - stream[0, -1])


def bound(params):
    """The bound on |ΔW|_F times the largest |u|, which bounds |ΔW u|."""
    scale, offset = (
        np.asarray(leaf[0]) for leaf in (params.attention_norm_scale, params.attention_norm_offset)
    )
    longest = np.abs(scale).max() * np.sqrt(D) + np.linalg.norm(offset)
    heads = zip(
        *(np.asarray(leaf[0]) for leaf in (params.w_o, params.w_v, params.w_k, params.w_q)),
        strict=True,
    )
    weights = sum(
        np.linalg.norm(w_o @ w_v, 2) * np.linalg.norm(w_k.T @ w_q) for w_o, w_v, w_k, w_q in heads
    )
    return longest**2 * weights * longest


@seeds
def test_after_a_norm_no_stream_makes_the_update_exceed_a_bound_of_the_weights(seed, size):
    assert written(seed, size) <= bound(draw(seed)[1]) * (1 + 1e-9)


def test_equal_demonstrations_that_one_head_reads_and_writes_reach_the_bound():
    config = transformer.Config(D, 1, 1, 4, kernel="linear", norm=True)
    key, query, new = np.linalg.qr(np.random.default_rng(0).normal(size=(D, 3)))[0].T
    key, query = (v - v.mean() for v in (key, query))  # a norm takes the mean away
    key, query = key / np.linalg.norm(key), query / np.linalg.norm(query)
    row = np.zeros((1, 1, 4, D))
    row[0, 0, 0] = key
    params = transformer.Params(
        w_q=row / key * query,
        w_k=row,
        w_v=row,
        w_o=(row / key * new).swapaxes(2, 3),
        attention_norm_scale=np.ones((1, D)),
        attention_norm_offset=np.zeros((1, D)),
    )
    tokens = np.array([*[key] * N, query])
    np.testing.assert_allclose(written_by(config, params, tokens, 1e3), bound(params), rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_after_a_norm_the_update_forgets_the_size_of_the_stream(seed):
    np.testing.assert_allclose(written(seed, 1e3), written(seed, 1e4), rtol=1e-4)


def test_control_without_a_norm_the_update_grows_with_the_cube_of_the_stream():
    np.testing.assert_allclose(written(0, 100.0, False), 1e6 * written(0, 1.0, False), rtol=1e-9)
    assert written(0, 1e3, False) > bound(draw(0)[1])
