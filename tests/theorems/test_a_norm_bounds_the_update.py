"""After a norm, weights alone bound what a layer of linear attention writes.

    |Σ_h W_V^h u_i ⊗ W_K^h u_i W_Q^h / n|_F ≤ max_i |u_i|² Σ_h |W_V^h|₂ |(W_K^h)ᵀ W_Q^h|_F,
    |u_i| ≤ max|s| √D + |o| for u = norm(h) with scales s and offsets o.

Papers: A2, Remark 4. docs/theory, "A norm bounds the update".
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from draws import draw_weights, jit_numpy, seed_and
from lsa_lab.models import transformer

D, HEADS, N = 6, 2, 9


@partial(jit_numpy, static_argnames="norm")
def written(params, tokens, norm=True):  # |what the layer adds to the query|
    config = transformer.Config(D, 1, len(params.w_q[0]), 4, kernel="linear", norm=norm)
    before, after = transformer.forward(params, tokens, config).stream[:, -1]
    return jnp.linalg.norm(after - before)


def draw(seed, norm=True):  # weights, scales and offsets, and tokens
    rng, config = np.random.default_rng(seed), transformer.Config(D, 1, HEADS, 4, norm=norm)
    return draw_weights(rng, transformer.init, config, 0.5), rng.normal(size=(N + 1, D))


def bound(params):  # of |ΔW|_F times the largest |u|
    scale, offset = params.attention_norm_scale[0], params.attention_norm_offset[0]
    longest = np.abs(scale).max() * np.sqrt(D) + np.linalg.norm(offset)
    heads = zip(params.w_o[0], params.w_v[0], params.w_k[0], params.w_q[0], strict=True)
    sizes = [np.linalg.norm(o @ v, 2) * np.linalg.norm(k.T @ q) for o, v, k, q in heads]
    return longest**3 * sum(sizes)


@seed_and(size=(1e-3, 1e3))
def test_after_a_norm_no_stream_makes_the_update_exceed_a_bound_of_the_weights(seed, size):
    params, tokens = draw(seed)
    assert written(params, size * tokens) <= bound(params) * (1 + 1e-9)
    large = written(params, 1e3 * tokens)  # the update forgets the size of the stream
    np.testing.assert_allclose(large, written(params, 1e4 * tokens), rtol=1e-4)


def test_equal_demonstrations_that_one_head_reads_and_writes_reach_the_bound():
    key, query, new = np.linalg.qr(np.random.default_rng(0).normal(size=(D, 3)))[0].T
    key, query = (v - v.mean() for v in (key, query))  # a norm subtracts the mean
    key, query = key / np.linalg.norm(key), query / np.linalg.norm(query)
    row = np.zeros((1, 1, 4, D))
    row[0, 0, 0] = key
    norm = dict(attention_norm_scale=np.ones((1, D)), attention_norm_offset=np.zeros((1, D)))
    w_q, w_o = row / key * query, (row / key * new).swapaxes(2, 3)
    params = transformer.Params(w_q=w_q, w_k=row, w_v=row, w_o=w_o, **norm)
    size = written(params, 1e3 * np.array([*[key] * N, query]))
    np.testing.assert_allclose(size, bound(params), rtol=1e-6)


def test_control_without_a_norm_the_update_grows_with_the_cube_of_the_stream():
    params, tokens = draw(0, norm=False)
    sizes = [written(params, size * tokens, norm=False) for size in (1.0, 100.0)]
    np.testing.assert_allclose(sizes[1], 1e6 * sizes[0], rtol=1e-9)
    assert 1e3 * sizes[1] > bound(draw(0)[0])
