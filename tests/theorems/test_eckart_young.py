"""No matrix of rank r is nearer than the truncated one (Eckart and Young 1936), and truncating what
is truncated is truncating once. A truncated model run by its factors predicts what the dense one
does: W_r = (U_r S_r) V_rᵀ, so that r columns of each factor do the work of the matrix.

Papers: A2 uses truncation. docs/theory, "Truncation", "Nested truncation", "The factored forward
pass".
"""

import functools

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given

import draws
from draws import SEEDS, draw_stack, forward, jit_numpy, relative_error, seed_and
from lsa_lab.analyses import clipping
from lsa_lab.models import constructions, transformer

shapes = pytest.mark.parametrize("shape", [(4, 9), (9, 4), (1, 3)])
seeds = seed_and(share=(0, 0.999))
truncate = jit_numpy(clipping.truncate)


def draw_frame(rng, rows, columns):
    return np.linalg.qr(rng.normal(size=(rows, columns)))[0]


def draw(seed, shape, flat=False):
    """A matrix with a spectrum between flat and steep, and the generator for its competitors."""
    rng, count = np.random.default_rng(seed), min(shape)
    left, right = (draw_frame(rng, side, count) for side in shape)
    values = rng.uniform(0.3, 1) ** np.arange(count) * rng.uniform(0.1, 10)
    return (left * (np.linspace(3, 1, count) if flat else values)) @ right.T, rng


def advantage(matrix, candidate, rank, rng):
    """The least |W - competitor| - |W - candidate|, relative to |W|, over both norms.

    Competitors: B Bᵀ W and W B Bᵀ for random B with r columns, and a step from what is kept.
    """
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    competitors = []
    for _ in range(5):
        rows, columns = (draw_frame(rng, side, rank) for side in matrix.shape)
        step = 10.0 ** rng.uniform(-4, 0)
        left, right = (
            kept + step * rng.normal(size=kept.shape) for kept in (u[:, :rank] * s[:rank], v[:rank])
        )
        competitors += [rows @ rows.T @ matrix, matrix @ columns @ columns.T, left @ right]
    sizes = [
        [np.linalg.norm(matrix - other, norm) for norm in ("fro", 2)]
        for other in (candidate, *competitors)
    ]
    return np.min((np.array(sizes[1:]) - sizes[0]) / [np.linalg.norm(s), s[0]])


@shapes
@seeds
def test_no_matrix_of_the_same_rank_is_nearer_and_the_error_is_what_was_dropped(shape, seed, share):
    matrix, rng = draw(seed, shape)
    rank, truncated = clipping.kept_rank(min(shape), share), truncate(matrix, share)
    assert np.linalg.matrix_rank(truncated) == rank
    assert advantage(matrix, truncated, rank, rng) > -1e-10
    s = np.linalg.svd(matrix, compute_uv=False)
    errors = [np.linalg.norm(matrix - truncated, norm) for norm in ("fro", 2)]
    expected = np.sqrt((s[rank:] ** 2).sum()), max(s[rank:], default=0.0)
    np.testing.assert_allclose(errors, expected, rtol=0, atol=1e-10 * s[0])


def change_of_descent(name, seed, share):
    """How far the stream of descent moves when one weight of every layer is truncated."""
    rng = np.random.default_rng(seed)
    params = constructions.gradient_descent(rng.uniform(0.1, 1, size=3), 4)
    tokens = rng.normal(size=(9, 5))
    cut = truncate(getattr(params, name), share)
    plain, edited = (forward(p, tokens).stream for p in (params, params.replace(**{name: cut})))
    return np.abs(edited - plain).max() / np.abs(plain).max()


@seeds
def test_the_values_of_descent_have_rank_one_and_no_rate_changes_it(seed, share):
    assert change_of_descent("w_pv", seed, share) < 1e-12


def nested_error(cut, matrix, rates):
    """|one rate after the other - the last alone| relative to what the last keeps."""
    nested, direct = functools.reduce(cut, rates, matrix), cut(matrix, rates[-1])
    return np.abs(nested - direct).max() / np.abs(direct).max()


@shapes
@given(seed=SEEDS, rates=st.lists(st.floats(0, 0.999), min_size=2, max_size=6))
def test_nested_truncation_is_direct_truncation(shape, seed, rates):
    assert nested_error(truncate, draw(seed, shape, flat=True)[0], sorted(rates)) < 1e-10


def test_control_other_terms_are_beaten_and_scores_of_full_rank_change_descent():
    matrix, rng = draw(0, (4, 9))
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    assert advantage(matrix, (u[:, 1:3] * s[1:3]) @ v[1:3], 2, rng) < -1e-2
    assert change_of_descent("w_kq", 0, 0.5) > 1e-2


def test_control_a_randomised_decomposition_and_rates_of_the_rank_that_is_left_compound():
    matrix, rng = draw(0, (9, 4))

    def sketched(matrix, rate):  # the best approximation within W Ω, Ω random with r columns
        basis = np.linalg.qr(matrix @ rng.normal(size=(4, clipping.kept_rank(4, rate))))[0]
        return basis @ basis.T @ matrix

    def remaining(matrix, rate):
        return truncate(matrix, 1 - clipping.kept_rank(np.linalg.matrix_rank(matrix), rate) / 4)

    assert nested_error(sketched, matrix, (0.3, 0.6)) > 1e-2
    assert nested_error(remaining, matrix, (0.3, 0.5)) > 1e-2


def split(params, rank):
    """w_kq = Σ s_i u_i v_iᵀ is W_Kᵀ W_Q with W_K = √s Uᵀ, W_Q = √s Vᵀ, and w_pv = W_O W_V."""
    factors = []
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


@pytest.mark.parametrize("rate", [0.5, 0.9])
@draws.seeds
def test_factors_as_heads_predict_what_truncated_weights_do(rate, seed):
    rng = np.random.default_rng(seed)
    params, tokens = draw_stack(rng, 2, 2, 5, 0.4), rng.normal(size=(9, 5))
    heads = split(params, clipping.kept_rank(5, rate))

    def error(dense_rate, keys="demonstrations"):
        dense = jax.tree.map(lambda w: truncate(w, dense_rate), params)
        stream = forward(dense, tokens, keys=keys).stream
        return relative_error(factored_stream(heads, tokens, keys), stream)

    assert error(rate) < 1e-10
    if seed == 0 and rate == 0.5:  # under every mask, and Control: another rank
        assert max(error(rate, "all"), error(rate, "causal")) < 1e-10
        assert error(0.75) > 1e-3
