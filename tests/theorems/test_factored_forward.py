"""A truncated model run by its factors predicts what the truncated dense one does.

W_r = (U_r S_r) V_rᵀ, so that r columns of each factor do the work of the matrix. docs/theory, "The
factored forward pass".
"""

import functools

import hypothesis
import jax
import numpy as np
import pytest

from draws import draw_stack, forward, jit_numpy, relative_error, seeds
from lsa_lab.analyses import clipping
from lsa_lab.models import transformer

truncate = jit_numpy(
    lambda params, rate: jax.tree.map(lambda w: clipping.truncate(w, rate), params)
)


def split(params, rate):
    """w_kq = Σ s_i u_i v_iᵀ is W_Kᵀ W_Q with W_K = √s Uᵀ, W_Q = √s Vᵀ, and w_pv = W_O W_V."""
    rank, factors = clipping.kept_rank(5, rate), []
    for matrix in (params.w_kq, params.w_pv):
        left, values, right = np.linalg.svd(matrix)
        roots = np.sqrt(values[..., :rank])
        factors += [left[..., :rank] * roots[..., None, :], right[..., :rank, :] * roots[..., None]]
    w_k, w_q, w_o, w_v = factors
    return transformer.Params(w_q=w_q, w_k=w_k.swapaxes(-1, -2), w_v=w_v, w_o=w_o)


@functools.partial(jit_numpy, static_argnames="keys")
def factored_stream(heads, tokens, keys):
    num_layers, num_heads, rank, e = heads.w_q.shape
    config = transformer.Config(e, num_layers, num_heads, rank, kernel="linear", keys=keys)
    return transformer.forward(heads, tokens, config).stream


def error(seed, rate, dense_rate=None, keys="demonstrations"):
    rng = np.random.default_rng(seed)
    params, tokens = draw_stack(rng, 2, 2, 5, 0.4), rng.normal(size=(9, 5))
    dense = truncate(params, rate if dense_rate is None else dense_rate)
    stream = factored_stream(split(params, rate), tokens, keys)
    return relative_error(stream, forward(dense, tokens, keys=keys).stream)


@pytest.mark.parametrize("rate", [0.5, 0.9])
@hypothesis.settings(max_examples=5)
@seeds
def test_factors_as_heads_predict_what_truncated_weights_do(rate, seed):
    assert error(seed, rate) < 1e-10


@pytest.mark.parametrize("keys", ["all", "causal"])
def test_they_do_so_under_every_mask(keys):
    assert error(0, 0.5, keys=keys) < 1e-10


def test_control_another_rank_predicts_something_else():
    assert error(0, 0.5, dense_rate=0.75) > 1e-3
