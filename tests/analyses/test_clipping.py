"""Ranks, truncation and conditioning of one matrix; modules of a model, cut and put back."""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.analyses import clipping
from lsa_lab.models import linear_attention, transformer

CONFIG = transformer.Config(4, 3, 2, 3, width=5, norm=True, mlp_width=6)
# In NumPy, whose slices are not programs.
SOFTMAX = jit_numpy(transformer.init, static_argnums=1)(jax.random.key(0), CONFIG)
LINEAR = jit_numpy(linear_attention.init, static_argnums=(1, 2, 3))(jax.random.key(1), 3, 2, 3, 1.0)
MATRIX = np.random.default_rng(0).normal(size=(5, 8))
NAMES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")


def rank(matrix):
    return np.linalg.matrix_rank(np.asarray(matrix))


@pytest.mark.parametrize("full", [1, 2, 8, 10, 32, 100, 4096])
def test_the_kept_rank_is_never_zero_and_exact_at_every_share(full):
    assert [clipping.kept_rank(full, rate) for rate in clipping.every_rate(full)] == list(
        range(full, 0, -1)
    )
    assert clipping.kept_rank(full, 1 - 1e-12) == 1
    assert clipping.kept_rank(full, 0) == full


def test_the_kept_rank_is_the_floor_of_exact_arithmetic():
    assert int((1 - 0.9) * 10) == 0  # the trap
    for rate in clipping.RATES:
        for full in range(1, 300):
            exact = math.floor((1 - Fraction(str(rate))) * full)
            assert clipping.kept_rank(full, rate) == max(1, exact)


@pytest.mark.parametrize("function", ["truncate", "factor"])
def test_a_matrix_with_nan_is_refused(function):
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or infinity"):
            getattr(clipping, function)(np.where(MATRIX > 1, bad, MATRIX), 0.5)
    assert np.isnan(jax.jit(clipping.truncate)(np.nan * MATRIX, 0.5)).all()  # not known in time


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_follows_the_matrix_and_the_svd_is_in_float64(dtype):
    matrix = jnp.asarray(MATRIX, dtype)
    found = clipping.truncate(matrix, 0.5)
    left, values, right = np.linalg.svd(np.asarray(matrix, np.float64), full_matrices=False)
    assert found.dtype == dtype
    assert rank(found) == 2
    expected = (left[:, :2] * values[:2]) @ right[:2]
    np.testing.assert_allclose(found, expected, atol=20 * np.finfo(dtype).eps)
    exact = values.astype(dtype)
    # Of float64 to rounding, which two builds of LAPACK share; float32 would be 1e-7 off.
    np.testing.assert_allclose(clipping.singular_values(matrix), exact, rtol=1e-15)
    for function in (clipping.condition_number, clipping.stable_rank):
        assert function(matrix).dtype == dtype


def test_rate_zero_changes_no_bit_and_drop_leaves_nothing():
    assert (clipping.truncate(MATRIX, 0.0) == MATRIX).all()
    assert (clipping.truncate(MATRIX, 0.1) != MATRIX).any()
    assert not clipping.drop(MATRIX).any()
    for edited in (SOFTMAX, LINEAR):
        kept = clipping.clip(edited, (0, 1, 2), "attention", 0.0)
        assert all(map(np.array_equal, jax.tree.leaves(kept), jax.tree.leaves(edited)))


def test_the_rate_may_be_traced_and_matrices_batched():
    many = np.stack([MATRIX, 2 * MATRIX])
    rates = jnp.array([0.0, 0.3, 0.9])
    found = jax.jit(jax.vmap(clipping.truncate, (None, 0)))(many, rates)
    for q, rate in enumerate(rates):
        for b in range(2):
            expected = clipping.truncate(many[b], float(rate))
            np.testing.assert_allclose(found[q, b], expected, atol=1e-12)


def test_condition_numbers_and_stable_rank_of_a_known_spectrum():
    matrix = np.zeros((3, 5))
    matrix[[0, 1, 2], [4, 0, 2]] = [2.0, -8.0, 1.0]
    assert clipping.singular_values(matrix).tolist() == [8, 2, 1]
    assert clipping.condition_number(matrix) == pytest.approx(8)
    assert clipping.condition_number(clipping.truncate(matrix, 1 / 3)) > 1e14
    assert clipping.stable_rank(matrix) == pytest.approx(69 / 64)
    zero = np.zeros((2, 2))
    assert clipping.condition_number(zero) == np.inf
    assert clipping.stable_rank(zero) == 0


@pytest.mark.parametrize("name", NAMES)
def test_only_the_named_matrix_of_the_named_layer_is_cut(name):
    edited = clipping.clip(SOFTMAX, 1, name, 0.7)
    for field in ("read_in", "read_out", "mlp_in_bias", "attention_norm_scale", *NAMES):
        before, after = getattr(SOFTMAX, field), getattr(edited, field)
        assert (before[0] == after[0]).all()
        assert (before == after).all() == (field != name)
    whole = clipping.matrices(edited, name)[name]
    full = min(whole.shape[1:])
    assert [rank(matrix) for matrix in whole] == [full, clipping.kept_rank(full, 0.7), full]


def test_a_projection_is_cut_with_its_heads_stacked_unless_heads_are_named():
    stacked = clipping.matrices(SOFTMAX, ("w_q", "w_o"))
    assert stacked["w_q"].shape == (3, 6, 5)
    assert stacked["w_o"].shape == (3, 5, 6)
    np.testing.assert_array_equal(stacked["w_q"][2], np.concatenate(list(SOFTMAX.w_q[2]), axis=0))
    np.testing.assert_array_equal(stacked["w_o"][2], np.concatenate(list(SOFTMAX.w_o[2]), axis=1))
    for name in ("w_q", "w_o"):
        whole = clipping.matrices(clipping.clip(SOFTMAX, 2, name, 0.4), name)[name][2]
        np.testing.assert_allclose(whole, clipping.truncate(stacked[name][2], 0.4), atol=1e-14)
        single = getattr(clipping.clip(SOFTMAX, 2, name, 0.4, heads=(1,)), name)
        before = getattr(SOFTMAX, name)
        np.testing.assert_allclose(single[2, 1], clipping.truncate(before[2, 1], 0.4), atol=1e-14)
        assert (single[2, 0] == before[2, 0]).all()
        assert (single[:2] == before[:2]).all()


def test_merged_weights_are_cut_in_each_head():
    edited = clipping.clip(LINEAR, 1, "attention", 0.5)
    for name in ("w_kq", "w_pv"):
        assert [[rank(m) for m in heads] for heads in getattr(edited, name)] == [
            [4, 4],
            [2, 2],
            [4, 4],
        ]
    only = clipping.clip(LINEAR, 1, "w_pv", 0.5, heads=np.array([0]))
    assert [rank(m) for m in only.w_pv[1]] == [2, 4]


def test_a_pytree_of_another_kind_is_searched_by_name():
    variables = {"params": {"w_q": SOFTMAX.w_q, "scale": jnp.ones(2)}}
    edited = clipping.clip(variables, 0, "w_q", 0.5)
    expected = clipping.clip(SOFTMAX, 0, "w_q", 0.5)
    assert (edited["params"]["w_q"] == expected.w_q).all()
    with pytest.raises(ValueError, match="w_q stands twice"):
        clipping.matrices({"a": variables, "b": variables}, "w_q")


@pytest.mark.parametrize(
    ("params", "names", "message"),
    [
        (LINEAR, "mlp", "module 'mlp': this model has attention, w_kq, w_pv"),
        (LINEAR, "w_q", "module 'w_q': this model has attention, w_kq, w_pv"),
        (SOFTMAX, "w_up", "w_up.*has attention, mlp, mlp_in, mlp_out, w_k, w_o, w_q, w_v"),
        (SOFTMAX, "read_in", "module 'read_in'"),
        (SOFTMAX, ("w_q", "w_pv"), "module 'w_pv'"),
        (SOFTMAX, (), "no module given"),
    ],
)
def test_a_module_that_a_model_lacks_is_refused(params, names, message):
    with pytest.raises(ValueError, match=message):
        clipping.clip(params, 0, names, 0.5)


def test_several_runs_are_no_model_and_are_refused_with_what_to_do():
    """What fit returns, [R, L, ...]: one run's layers would be cut and the others left."""
    runs = jax.tree.map(lambda leaf: np.stack([leaf] * 4), LINEAR)
    batches = {"validation": np.ones(3), "test": np.zeros(3)}
    for call in (
        lambda: clipping.clip(runs, 0, "w_kq", 0.5),
        lambda: clipping.condition_numbers(runs, "w_kq"),
        lambda: clipping.search(None, runs, **batches, modules="w_kq", errors=len),
        lambda: clipping.search_everywhere(None, runs, **batches, modules=["w_kq"], errors=len),
        lambda: clipping.compose(None, runs, **batches, modules=["w_kq"], errors=len),
    ):
        with pytest.raises(ValueError, match=r"with \(4,\) before the axes of one model.*take one"):
            call()


def test_layers_and_heads_that_a_model_lacks_are_refused():
    for layers in (3, -1, (0, 5), ()):
        with pytest.raises(ValueError, match="has 0 to 2"):
            clipping.clip(SOFTMAX, layers, "w_q", 0.5)
    with pytest.raises(ValueError, match=r"heads \(2,\): this model has 0 to 1"):
        clipping.clip(SOFTMAX, 0, "w_q", 0.5, heads=(2,))
    with pytest.raises(ValueError, match="only the matrices of attention have heads"):
        clipping.clip(SOFTMAX, 0, "mlp", 0.5, heads=(0,))


RIVALS = {
    "svd": clipping.by_singular_value,
    "projection": functools.partial(clipping.by_random_direction, jax.random.key(3)),
    "pruning": clipping.by_magnitude,
}


@pytest.mark.parametrize("name", ["w_q", "mlp_in", "mlp_out"])
def test_rivals_are_of_equal_size(name):
    whole = np.asarray(clipping.matrices(SOFTMAX, name)[name][0])
    full = min(whole.shape)
    for rate in clipping.every_rate(full):
        kept = clipping.kept_rank(full, rate)
        found = {
            rival: np.asarray(
                clipping.matrices(clipping.clip(SOFTMAX, 0, name, rate, split=split), name)[name][0]
            )
            for rival, split in RIVALS.items()
        }
        assert rank(found["svd"]) == rank(found["projection"]) == kept
        numbers = clipping.free_numbers(*whole.shape, kept)
        assert (found["pruning"] != 0).sum() == numbers
        left = np.abs(whole[found["pruning"] != 0]).min()
        assert (np.abs(whole[found["pruning"] == 0]) <= left).all()
        lost = {rival: np.linalg.norm(whole - matrix) for rival, matrix in found.items()}
        assert lost["svd"] <= lost["projection"] + 1e-12
        if 1 <= kept < full:  # random directions are no singular ones: they lose clearly more
            assert lost["svd"] < 0.9 * lost["projection"]
        if rate == 0:
            assert max(lost.values()) == 0
    assert clipping.free_numbers(*whole.shape, full) == whole.size


def test_a_factored_matrix_acts_as_the_truncated_one():
    rows = np.random.default_rng(1).normal(size=(4, 8))
    expected = rows @ clipping.truncate(MATRIX, 0.5).T
    acted = clipping.apply(clipping.factor(MATRIX, 0.5), rows)
    np.testing.assert_allclose(acted, expected, atol=1e-12)


@pytest.mark.parametrize("run", [clipping.kept_rank, jax.jit(clipping.kept_rank)])
def test_rates_in_float32_lose_no_rank_of_a_large_matrix(run):
    full, rates = np.arange(1, 400), np.array([*clipping.RATES, 0.0, 0.995])
    exact = [[clipping.kept_rank(int(rank), float(rate)) for rate in rates] for rank in full]
    for dtype in (np.float32, np.float64):
        rows = np.broadcast_to(rates.astype(dtype), (len(full), len(rates)))
        assert run(np.repeat(full[:, None], len(rates), axis=1), rows).tolist() == exact
