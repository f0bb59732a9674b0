"""Ranks and truncation of a matrix, edits of models, curves over edits, and the search."""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab import prompts
from lsa_lab.analyses import clipping
from lsa_lab.lm import weights
from lsa_lab.lm.config import Config
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.matrices import matrices
from lsa_lab.prompts import Prompt

R, N, D, B = 2, 6, 3, 5
CONFIG = transformer.Config(D + 1, 3, 2, 2, width=5, norm=True, mlp_width=6)
RUNS = jit_numpy(jax.vmap(lambda key: transformer.init(key, CONFIG)))(
    jax.random.split(jax.random.key(0), R)
)
SOFTMAX = jit_numpy(transformer.init, static_argnums=1)(jax.random.key(0), CONFIG)
LINEAR = jit_numpy(linear_attention.init, static_argnums=(1, 2, 3))(jax.random.key(1), 3, 2, D, 1.0)
SHARED = Config(3, 4, 2, 2, 8, 10, 13, 32, rotary_width=2)  # two heads share keys and values
DECODER = jit_numpy(weights.init, static_argnums=1)(jax.random.key(0), SHARED)
MATRIX = np.random.default_rng(0).normal(size=(5, 8))
NAMES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")


def rank(matrix):
    return np.linalg.matrix_rank(np.asarray(matrix))


def kept_rank_exactly(full, rate):
    return max(1, math.floor((1 - Fraction(str(rate))) * full))


def test_the_kept_rank_is_the_floor_of_exact_arithmetic():
    assert int((1 - 0.9) * 10) == 0  # the error of plain floats
    for full in range(1, 300):
        for rate in (*clipping.RATES, 1 - 1e-12):
            assert clipping.kept_rank(full, rate) == kept_rank_exactly(full, rate)
        reached = [clipping.kept_rank(full, rate) for rate in clipping.every_rate(full)]
        assert reached == list(range(full, 0, -1))


@pytest.mark.parametrize("run", [clipping.kept_rank, jax.jit(clipping.kept_rank)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kept_rank_of_arrays_is_that_of_numbers_in_both_precisions(run, dtype):
    full, rates = np.arange(1, 400), np.array([*clipping.RATES, 0.0, 0.995])
    exact = [[clipping.kept_rank(int(rank), float(rate)) for rate in rates] for rank in full]
    rows = np.broadcast_to(rates.astype(dtype), (len(full), len(rates)))
    assert run(np.repeat(full[:, None], len(rates), axis=1), rows).tolist() == exact


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_svd_is_in_float64_and_the_dtype_is_that_of_the_matrix(dtype):
    matrix = jnp.asarray(MATRIX, dtype)
    truncated = clipping.truncate(matrix, 0.5)
    left, values, right = np.linalg.svd(np.asarray(matrix, np.float64), full_matrices=False)
    expected = (left[:, :2] * values[:2]) @ right[:2]
    np.testing.assert_allclose(truncated, expected, atol=20 * np.finfo(dtype).eps)
    # float32 would be 1e-7 off.
    exact = values.astype(dtype)
    np.testing.assert_allclose(clipping.singular_values(matrix), exact, rtol=1e-15)
    functions = (clipping.truncate(matrix, 0.5), clipping.condition_number(matrix))
    assert {x.dtype for x in functions} == {np.dtype(dtype)}
    assert (clipping.truncate(matrix, 0.0) == matrix).all()


def test_the_rate_may_be_traced_and_matrices_batched():
    batch, rates = np.stack([MATRIX, 2 * MATRIX]), jnp.array([0.0, 0.3, 0.9])
    truncated = jax.jit(jax.vmap(clipping.truncate, (None, 0)))(batch, rates)
    for q, rate in enumerate(rates):
        for b in range(2):
            expected = clipping.truncate(batch[b], float(rate))
            np.testing.assert_allclose(truncated[q, b], expected, atol=1e-12)
    assert np.isnan(jax.jit(clipping.truncate)(np.nan * MATRIX, 0.5)).all()  # not concrete


def test_the_condition_number_of_a_known_spectrum():
    matrix = np.zeros((3, 5))
    matrix[[0, 1, 2], [4, 0, 2]] = [2.0, -8.0, 1.0]
    assert clipping.singular_values(matrix).tolist() == [8, 2, 1]
    assert clipping.condition_number(matrix) == pytest.approx(8)
    assert clipping.condition_number(clipping.truncate(matrix, 1 / 3)) > 1e14
    assert clipping.condition_number(np.zeros((2, 2))) == np.inf


@pytest.mark.parametrize("name", NAMES)
def test_only_the_named_matrix_of_the_named_layer_is_truncated(name):
    edited = clipping.clip(SOFTMAX, 1, name, 0.7)
    for field in ("read_in", "read_out", "mlp_in_bias", "attention_norm_scale", *NAMES):
        before, after = getattr(SOFTMAX, field), np.asarray(getattr(edited, field))
        assert (before[0] == after[0]).all()
        assert (before == after).all() == (field != name)
    stack, edited_stack = matrices(SOFTMAX, name)[name], matrices(edited, name)[name]
    np.testing.assert_allclose(edited_stack[1], clipping.truncate(stack[1], 0.7), atol=1e-14)
    full = min(stack.shape[1:])
    assert [rank(m) for m in edited_stack] == [full, clipping.kept_rank(full, 0.7), full]


def test_heads_are_joined_but_for_merged_weights_and_as_shared_ones_are_stored():
    joined = matrices(clipping.clip(SOFTMAX, 2, "w_o", 0.4), "w_o")["w_o"][2]
    expected = clipping.truncate(np.concatenate(list(SOFTMAX.w_o[2]), axis=1), 0.4)
    np.testing.assert_allclose(joined, expected, atol=1e-14)
    edited = clipping.clip(LINEAR, 1, "attention", 0.5)
    for stack in (edited.w_kq, edited.w_pv):
        assert [[rank(m) for m in heads] for heads in stack] == [[4, 4], [2, 2], [4, 4]]
    edited = clipping.clip(DECODER, 1, "attention", 0.5)
    ranks = [rank(np.concatenate(list(edited.w_k[layer]))) for layer in range(3)]
    assert ranks == [4, 2, 4]  # of two groups of width 2
    dropped = clipping.clip(DECODER, (1,), ("attention", "mlp"), clipping.DROP)
    for name in (*NAMES, "mlp_gate"):
        empty = [not np.any(getattr(dropped, name)[layer]) for layer in range(3)]
        assert empty == [False, True, False]


def test_an_edit_keeps_the_bits_of_a_model_where_it_cuts_nothing():
    for params in (SOFTMAX, LINEAR):
        for edited in (
            clipping.clip(params, (0, 1, 2), "attention", 0.0),
            clipping.rebuild(
                params,
                clipping.svd_terms(matrices(params)),
                clipping.kept_ranks(params, clipping.Edit((0, 1), "attention", 0.0)),
            ),
        ):
            assert all(map(np.array_equal, jax.tree.leaves(edited), jax.tree.leaves(params)))


DECOMPOSITIONS = {
    "svd": clipping.svd_terms,
    "pruning": clipping.sorted_magnitudes,
}


@pytest.mark.parametrize("name", ["w_q", "mlp_in", "mlp_out"])
def test_pruning_keeps_as_many_parameters(name):
    stacks = matrices(SOFTMAX, name)
    whole = np.asarray(stacks[name][0])
    full = min(whole.shape)
    pieces = {key: decompose(stacks) for key, decompose in DECOMPOSITIONS.items()}
    for rate in (*clipping.every_rate(full), clipping.DROP):
        kept = clipping.kept_ranks(SOFTMAX, clipping.Edit(0, name, rate))
        edited = {}
        for key in DECOMPOSITIONS:
            params = clipping.rebuild(SOFTMAX, pieces[key], kept)
            edited[key] = np.asarray(matrices(params, name)[name][0])
        k = kept[name][0]
        np.testing.assert_array_equal(kept[name][1:], full)
        assert rank(edited["svd"]) == k
        count = clipping.count_parameters(*whole.shape, k)
        assert (edited["pruning"] != 0).sum() == count
        smallest = np.abs(whole[edited["pruning"] != 0]).min(initial=np.inf)
        assert (np.abs(whole[edited["pruning"] == 0]) <= smallest).all()
        lost = {key: np.linalg.norm(whole - matrix) for key, matrix in edited.items()}
        if k == full:
            assert max(lost.values()) == 0
    assert clipping.count_parameters(*whole.shape, full) == whole.size


def test_pruning_keeps_all_entries_that_equal_the_smallest_kept_one():
    params = {"w": np.stack([np.array([[2.0, 1.0], [-1.0, 0.5]])] * 2)}
    pieces = clipping.sorted_magnitudes(matrices(params))
    edited = clipping.rebuild(params, pieces, {"w": np.array([1, 2])})  # three and four entries
    assert edited["w"].tolist() == [[[2, 1], [-1, 0]], [[2, 1], [-1, 0.5]]]


MODULES = ("w_q", ("w_v", "mlp_out"), "mlp")
RATES = (0.0, 0.5, 0.9, 0.95, clipping.DROP)


@functools.cache
def batch():
    rng = np.random.default_rng(0)
    return Prompt(*(rng.normal(size=s) for s in ((B, N, D), (B, N), (B, D), (B,))))


def risk(params, prompt_batch):
    read = jax.vmap(lambda p: transformer.predict(params, prompts.tokens(p), CONFIG))
    return (read(prompt_batch) - prompt_batch.y_query) ** 2


@functools.cache
def grid():
    return clipping.curve(risk, RUNS, batch(), modules=MODULES, rates=RATES, shots=(2, N))


compiled_risk = jax.jit(risk)


@pytest.mark.parametrize(("r", "s", "k", "m"), [(0, 0, 0, 0), (1, 1, 1, 1), (1, 0, 2, 2)])
def test_every_place_of_a_curve_is_one_edit(r, s, k, m):
    params, n = jax.tree.map(lambda leaf: leaf[r], RUNS), (2, N)[s]
    shortened = batch().replace(x=batch().x[:, :n], y=batch().y[:, :n])
    before = np.asarray(compiled_risk(params, shortened))
    for q in (1, 2, 4):
        edited = clipping.clip(params, k, MODULES[m], RATES[q])
        after = np.asarray(compiled_risk(edited, shortened))
        for name in ("mean", "median"):
            average, curve = getattr(np, name), grid()
            place = (r, s, k, m, q)
            for averages, expected in (
                (getattr(curve.unclipped, name)[r, s], average(before)),
                (getattr(curve.clipped, name)[place], average(after)),
                (getattr(curve.change, name)[place], average(after - before)),
            ):
                np.testing.assert_allclose(averages, expected, atol=1e-10)


def test_rates_that_cut_nothing_change_nothing_and_equal_ranks_are_equal():
    change = grid().change.mean
    assert change.shape == (R, 2, 3, 3, 5)
    assert not change[..., 0].any()
    assert (change[..., 1:] != 0).all()
    assert (change[..., 2] == change[..., 3])[:, :, :, 0].all()  # of 4: rank 1 both
    whole = clipping.curve(risk, RUNS, batch(), modules=["w_q"], rates=[0.0])
    assert (whole.clipped.mean[:, :, 0, 0, 0] == whole.unclipped.mean).all()


def test_a_curve_of_layers_that_are_cut_together():
    options = dict(modules=["w_o"], rates=[0.5], layers=[(0, 2)])
    curve = clipping.curve(risk, RUNS, batch(), **options)
    params = jax.tree.map(lambda leaf: leaf[1], RUNS)
    kept = clipping.kept_ranks(params, clipping.Edit((0, 2), "w_o", 0.5))
    edited = clipping.rebuild(params, clipping.svd_terms(matrices(params, "w_o")), kept)
    expected = compiled_risk(edited, batch()).mean()
    np.testing.assert_allclose(curve.clipped.mean[1, 0, 0, 0, 0], expected, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params": SOFTMAX}, "first axes of different sizes.*give one model such an axis"),
        ({"shots": (N + 1,)}, "the prompts have 6 demonstrations"),
        ({"risk": lambda params, prompts: jnp.zeros(())}, "the error of each prompt"),
        ({"layers": [3]}, "has 0 to 2"),
    ],
)
def test_a_curve_that_cannot_be_drawn_is_refused(change, message):
    call = dict(risk=risk, params=RUNS, batch=batch(), modules=["w_q"], rates=[0.5]) | change
    with pytest.raises(ValueError, match=message):
        clipping.curve(**call)


# Only the first singular value of each layer is signal; the others add to the error.
SPECTRA = ((1.0, 0.5, 0.4, 0.3), (1.0, 0.1, 0.02, 0.01), (1.0, 0.3, 0.1, 0.02))
TOY = {"mlp_in": np.stack([np.diag(np.array(values)) for values in SPECTRA])}
FLAX = {f"layers_{t}": {"mlp": {"kernel": TOY["mlp_in"][t]}} for t in range(3)}
TOY_RATES = clipping.every_rate(4)


def draw_toy_prompts(seed, noise=0.0):
    rng = np.random.default_rng(seed)
    return {"base": 3 + rng.random(40), "noise": noise * rng.normal(size=(40, 3, 4))}


VALIDATION, TEST = draw_toy_prompts(0), draw_toy_prompts(1)


def toy_risk(params, toy_prompts):
    """Each prompt's base, plus the trailing entries, plus the effect of each entry on it."""
    (stack,) = matrices(params).values()
    diagonal = jnp.diagonal(stack, axis1=-2, axis2=-1)  # [L, r]
    is_kept = jnp.where(jnp.abs(diagonal) > 1e-9, 1.0, 0.0)
    noise = jnp.einsum("lr,blr->b", is_kept, toy_prompts["noise"])
    error = jnp.abs(1 - diagonal[:, 0]).sum() + diagonal[:, 1:].sum()
    return toy_prompts["base"] + error + noise


@pytest.mark.parametrize(("top_k", "layer"), [(1, 1), (2, 2), (3, 2)])
def test_algorithm_1_clips_the_deepest_of_the_worst_conditioned_layers(top_k, layer):
    params, module = (FLAX, "mlp/kernel") if top_k == 3 else (TOY, "mlp")
    conditions = clipping.condition_numbers(params, module)
    np.testing.assert_allclose(conditions, [1 / 0.3, 100, 50])
    options = dict(modules=module, rates=TOY_RATES, top_k=top_k)
    result = clipping.search(toy_risk, params, VALIDATION, TEST, **options)
    assert result.edits == (clipping.Edit(layer, module, 0.75),)
    assert result.validation_gain == pytest.approx(sum(SPECTRA[layer][1:]))
    np.testing.assert_allclose(result.test_gains, result.validation_gain)
    assert len(result.tried) == len(TOY_RATES)
    expected = np.mean(TEST["base"]) + sum(sum(values[1:]) for values in SPECTRA)
    assert result.test_risk == pytest.approx(expected)


def test_the_smallest_of_equally_good_rates_wins_and_no_edit_where_none_helps():
    rates = (0.99, 0.9, 0.76, 0.95)  # rank 1, all of them
    result = clipping.search(toy_risk, TOY, VALIDATION, TEST, modules="mlp_in", rates=rates)
    assert result.edits[0].rate == 0.76
    harmed = lambda params, p: p["base"] - params["mlp_in"].sum()  # noqa: E731
    result = clipping.search(harmed, TOY, VALIDATION, TEST, modules="mlp_in", rates=rates)
    assert result.edits == ()
    assert result.validation_gain == result.test_gain == result.optimism == 0


def test_the_test_gains_are_paired_and_the_optimism_is_the_excess_of_validation():
    validation, test = draw_toy_prompts(0, 0.1), draw_toy_prompts(1, 0.1)
    options = dict(modules="mlp_in", rates=TOY_RATES)
    result = clipping.search(toy_risk, TOY, validation, test, **options)
    (edit,) = result.edits
    edited = clipping.clip(TOY, edit.layers, edit.modules, edit.rate)
    gains = np.asarray(toy_risk(TOY, test) - toy_risk(edited, test))
    np.testing.assert_allclose(result.test_gains, gains, atol=1e-12)
    assert result.test_gain == pytest.approx(gains.mean())
    assert result.optimism == pytest.approx(result.validation_gain - gains.mean()) != 0


def diverge_when_cut(value):
    def risk(params, toy_prompts):
        is_whole = params["mlp_in"][2, 3, 3] > 1e-9
        return toy_prompts["base"] + jnp.where(is_whole, 0.0, value)

    return risk


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": VALIDATION}, "same prompts"),
        ({"top_k": 4}, "has 3 layers"),
        ({"rates": ()}, "no rates"),
        ({"risk": diverge_when_cut(jnp.nan)}, "there is no best rate"),
        ({"risk": diverge_when_cut(-jnp.inf)}, "there is no best rate"),
        ({"risk": lambda params, p: jnp.nan * p["base"]}, "of the unclipped model"),
    ],
)
def test_a_search_without_an_answer_is_refused(change, message):
    call = dict(risk=toy_risk, params=TOY, validation=VALIDATION, test=TEST, modules="mlp_in")
    with pytest.raises(ValueError, match=message):
        clipping.search(**call | change)


def test_the_condition_number_of_several_matrices_is_their_largest():
    params = {
        "w_kq": np.stack([np.eye(2), np.diag([3.0, 1])])[:, None],
        "w_pv": np.ones((2, 1, 2, 2)),
    }
    assert clipping.condition_numbers(params, "w_kq").tolist() == pytest.approx([1, 3])
    assert np.isinf(clipping.condition_numbers(params, "attention")).all()
