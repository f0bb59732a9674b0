"""Ranks and truncation of a matrix, edits of models, curves over edits, and the search."""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, draw_weights, jit_numpy
from lsa_lab import prompts
from lsa_lab.analyses import clipping
from lsa_lab.lm import weights
from lsa_lab.lm.config import Config
from lsa_lab.models import transformer
from lsa_lab.models.matrices import matrices

R, N, D, B = 2, 6, 3, 5
CONFIG = transformer.Config(D + 1, 3, 2, 2, width=5, norm=True, mlp_width=6)
RNG = np.random.default_rng(0)
MODELS = [draw_weights(RNG, transformer.init, CONFIG, 0.5) for _ in range(R)]
RUNS = jax.tree.map(lambda *leaves: np.stack(leaves), *MODELS)
SOFTMAX, LINEAR = MODELS[0], draw_stack(RNG, 3, 2, D + 1)
SHARED = Config(3, 4, 2, 2, 8, 10, 13, 32, rotary_width=2)  # two heads share keys and values
DECODER = draw_weights(RNG, weights.init, SHARED)
MATRIX = RNG.normal(size=(5, 8))
NAMES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")
BATCH = jax.tree.map(lambda *leaves: np.stack(leaves), *(draw_prompt(RNG, N, D) for _ in range(B)))
rank = np.linalg.matrix_rank


def kept_rank_exactly(full, rate):
    return max(1, math.floor((1 - Fraction(str(rate))) * full))


def test_the_kept_rank_is_the_floor_of_exact_arithmetic_for_numbers_and_arrays():
    assert int((1 - 0.9) * 10) == 0  # the error of plain floats
    full, rates = np.arange(1, 400), np.array([*clipping.RATES, 0.995, 1 - 1e-12])
    exact = [[kept_rank_exactly(int(f), float(rate)) for rate in rates] for f in full]
    found = [[clipping.kept_rank(int(f), float(rate)) for rate in rates] for f in full]
    assert found == exact
    for size in range(1, 100):
        reached = [clipping.kept_rank(size, rate) for rate in clipping.every_rate(size)]
        assert reached == list(range(size, 0, -1))
    for run in (clipping.kept_rank, jit_numpy(clipping.kept_rank)):
        for dtype in (np.float32, np.float64):
            table = run(full[:, None], rates[None, :-1].astype(dtype))
            assert table.tolist() == [row[:-1] for row in exact]


def test_the_svd_is_in_float64_and_the_dtype_is_that_of_the_matrix():
    matrix = MATRIX.astype(np.float32)
    truncated, whole = clipping.truncate(matrix, 0.5), clipping.truncate(matrix, 0.0)
    left, values, right = np.linalg.svd(matrix.astype(float), full_matrices=False)
    expected = (left[:, :2] * values[:2]) @ right[:2]
    np.testing.assert_allclose(truncated, expected, atol=20 * np.finfo(np.float32).eps)
    exact = values.astype(np.float32)  # float32 would be 1e-7 off
    np.testing.assert_allclose(clipping.singular_values(matrix), exact, rtol=1e-15)
    assert truncated.dtype == clipping.condition_number(matrix).dtype == np.float32
    np.testing.assert_array_equal(whole, matrix)
    assert np.isnan(jit_numpy(clipping.truncate)(np.nan * matrix, 0.5)).all()  # not concrete


def test_the_condition_number_of_a_known_spectrum_and_of_several_matrices():
    matrix = np.zeros((3, 5))
    matrix[[0, 1, 2], [4, 0, 2]] = [2.0, -8.0, 1.0]
    assert clipping.singular_values(matrix).tolist() == [8, 2, 1]
    assert clipping.condition_number(matrix) == pytest.approx(8)
    assert clipping.condition_number(clipping.truncate(matrix, 1 / 3)) > 1e14
    assert clipping.condition_number(np.zeros((2, 2))) == np.inf
    w_kq = np.stack([np.eye(2), np.diag([3.0, 1])])[:, None]
    params = {"w_kq": w_kq, "w_pv": np.ones((2, 1, 2, 2))}
    assert clipping.condition_numbers(params, "w_kq").tolist() == pytest.approx([1, 3])
    assert np.isinf(clipping.condition_numbers(params, "attention")).all()


@pytest.mark.parametrize("name", ["w_q", "w_o", "mlp_in"])
def test_only_the_named_matrix_of_the_named_layer_is_truncated_with_its_heads_joined(name):
    edited = clipping.clip(SOFTMAX, 1, name, 0.7)
    for field, before in vars(SOFTMAX).items():
        after = getattr(edited, field)
        if before is not None:
            assert (before[0] == after[0]).all()
            assert (before == after).all() == (field != name)
    stack, edited_stack = matrices(SOFTMAX, name)[name], matrices(edited, name)[name]
    np.testing.assert_allclose(edited_stack[1], clipping.truncate(stack[1], 0.7), atol=1e-14)
    full = min(stack.shape[1:])
    assert rank(edited_stack).tolist() == [full, clipping.kept_rank(full, 0.7), full]


def test_merged_weights_are_truncated_by_head_and_shared_heads_as_they_are_stored():
    edited = clipping.clip(LINEAR, 1, "attention", 0.5)
    for stack in (edited.w_kq, edited.w_pv):
        assert rank(stack).tolist() == [[4, 4], [2, 2], [4, 4]]
    edited = clipping.clip(DECODER, 1, "attention", 0.5)
    joined = np.reshape(edited.w_k, (3, -1, 8))
    assert rank(joined).tolist() == [4, 2, 4]  # of two groups of width 2
    dropped = clipping.clip(DECODER, (1,), ("attention", "mlp"), clipping.DROP)
    for name in (*NAMES, "mlp_gate"):
        empty = [not np.any(getattr(dropped, name)[layer]) for layer in range(3)]
        assert empty == [False, True, False]


@pytest.mark.parametrize("name", ["w_q", "mlp_out"])
def test_pruning_keeps_as_many_parameters_the_largest_ones(name):
    stacks = matrices(SOFTMAX, name)
    whole = np.asarray(stacks[name][0])
    full = min(whole.shape)
    pieces = clipping.svd_terms(stacks), clipping.sorted_magnitudes(stacks)
    for rate in (*clipping.every_rate(full), clipping.DROP):
        kept = clipping.kept_ranks(SOFTMAX, clipping.Edit(0, name, rate))
        np.testing.assert_array_equal(kept[name][1:], full)
        truncated, pruned = (
            np.asarray(matrices(clipping.rebuild(SOFTMAX, piece, kept), name)[name][0])
            for piece in pieces
        )
        k = kept[name][0]
        assert rank(truncated) == k
        assert (pruned != 0).sum() == clipping.count_parameters(*whole.shape, k)
        smallest = np.abs(whole[pruned != 0]).min(initial=np.inf)
        assert (np.abs(whole[pruned == 0]) <= smallest).all()
        if k == full:
            np.testing.assert_array_equal([truncated, pruned], [whole, whole])


def test_pruning_keeps_all_entries_that_equal_the_smallest_kept_one():
    params = {"w": np.stack([np.array([[2.0, 1.0], [-1.0, 0.5]])] * 2)}
    pieces = clipping.sorted_magnitudes(matrices(params))
    edited = clipping.rebuild(params, pieces, {"w": np.array([1, 2])})  # three and four entries
    assert edited["w"].tolist() == [[[2, 1], [-1, 0]], [[2, 1], [-1, 0.5]]]


MODULES = ("w_q", ("w_v", "mlp_out"), "mlp")
RATES = (0.0, 0.5, 0.9, 0.95, clipping.DROP)
SHOTS = (2, N)


def risk(params, prompt_batch):
    read = jax.vmap(lambda p: transformer.predict(params, prompts.tokens(p), CONFIG))
    return (read(prompt_batch) - prompt_batch.y_query) ** 2


@functools.cache
def draw_curve():
    return clipping.curve(risk, RUNS, BATCH, modules=MODULES, rates=RATES, shots=SHOTS)


compiled_risk = jit_numpy(risk)


@pytest.mark.parametrize(("r", "s", "k", "m"), [(0, 0, 0, 0), (1, 1, 1, 1), (1, 0, 2, 2)])
def test_every_place_of_a_curve_is_one_edit(r, s, k, m):
    curve, n = draw_curve(), SHOTS[s]
    shortened = BATCH.replace(x=BATCH.x[:, :n], y=BATCH.y[:, :n])
    before = compiled_risk(MODELS[r], shortened)
    for q in (1, 2, 4):
        edited = clipping.clip(MODELS[r], k, MODULES[m], RATES[q])
        after = compiled_risk(edited, shortened)
        for average in (np.mean, np.median):
            unclipped, *places = (
                getattr(averages, average.__name__)
                for averages in (curve.unclipped, curve.clipped, curve.change)
            )
            found = unclipped[r, s], *(values[r, s, k, m, q] for values in places)
            expected = average(before), average(after), average(after - before)
            np.testing.assert_allclose(found, expected, atol=1e-10)


def test_rates_that_cut_nothing_change_nothing_and_equal_ranks_are_equal():
    change = draw_curve().change.mean
    assert change.shape == (R, 2, 3, 3, 5)
    assert not change[..., 0].any()
    assert (change[..., 1:] != 0).all()
    assert (change[..., 2] == change[..., 3])[:, :, :, 0].all()  # of 4: rank 1 both


def test_a_curve_of_layers_that_are_cut_together():
    options = dict(modules=["w_o"], rates=[0.5, 0.0], layers=[(0, 2)])
    curve = clipping.curve(risk, RUNS, BATCH, **options)
    edited = clipping.clip(MODELS[1], (0, 2), "w_o", 0.5)
    expected = compiled_risk(edited, BATCH).mean()
    np.testing.assert_allclose(curve.clipped.mean[1, 0, 0, 0, 0], expected, atol=1e-10)
    assert (curve.clipped.mean[:, :, 0, 0, 1] == curve.unclipped.mean).all()


# Only the first singular value of each layer is signal; the others add to the error.
SPECTRA = np.array([[1.0, 0.5, 0.4, 0.3], [1.0, 0.1, 0.02, 0.01], [1.0, 0.3, 0.1, 0.02]])
TOY = {"mlp_in": np.stack([np.diag(values) for values in SPECTRA])}
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


search = functools.partial(clipping.search, modules="mlp_in", rates=TOY_RATES)


@pytest.mark.parametrize(("top_k", "layer"), [(1, 1), (2, 2), (3, 2)])
def test_algorithm_1_clips_the_deepest_of_the_worst_conditioned_layers(top_k, layer):
    params, module = (FLAX, "mlp/kernel") if top_k == 3 else (TOY, "mlp")
    conditions = clipping.condition_numbers(params, module)
    np.testing.assert_allclose(conditions, [1 / 0.3, 100, 50])
    result = search(toy_risk, params, VALIDATION, TEST, modules=module, top_k=top_k)
    assert result.edits == (clipping.Edit(layer, module, 0.75),)
    assert result.validation_gain == pytest.approx(SPECTRA[layer, 1:].sum())
    np.testing.assert_allclose(result.test_gains, result.validation_gain)
    assert len(result.tried) == len(TOY_RATES)
    assert result.test_risk == pytest.approx(np.mean(TEST["base"]) + SPECTRA[:, 1:].sum())


def test_the_smallest_of_equally_good_rates_wins_and_no_edit_where_none_helps():
    rates = (0.99, 0.9, 0.76, 0.95)  # rank 1, all of them
    result = search(toy_risk, TOY, VALIDATION, TEST, rates=rates)
    assert result.edits[0].rate == 0.76
    harmed = lambda params, p: p["base"] - params["mlp_in"].sum()  # noqa: E731
    result = search(harmed, TOY, VALIDATION, TEST, rates=rates)
    assert result.edits == ()
    assert result.validation_gain == result.test_gains.mean() == result.optimism == 0


def test_the_test_gains_are_paired_and_the_optimism_is_the_excess_of_validation():
    validation, test = draw_toy_prompts(0, 0.1), draw_toy_prompts(1, 0.1)
    result = search(toy_risk, TOY, validation, test)
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


draw = functools.partial(
    clipping.curve, risk=risk, params=RUNS, batch=BATCH, modules=["w_q"], rates=[0.5]
)
seek = functools.partial(search, risk=toy_risk, params=TOY, validation=VALIDATION, test=TEST)


@pytest.mark.parametrize(
    ("run", "change", "message"),
    [
        (draw, {"params": SOFTMAX}, "first axes of different sizes.*give one model such an axis"),
        (draw, {"shots": (N + 1,)}, "the prompts have 6 demonstrations"),
        (draw, {"risk": lambda params, prompts: jnp.zeros(())}, "the error of each prompt"),
        (draw, {"layers": [3]}, "has 0 to 2"),
        (seek, {"test": VALIDATION}, "same prompts"),
        (seek, {"top_k": 4}, "has 3 layers"),
        (seek, {"rates": ()}, "no rates"),
        (seek, {"risk": diverge_when_cut(jnp.nan)}, "there is no best rate"),
        (seek, {"risk": diverge_when_cut(-jnp.inf)}, "there is no best rate"),
        (seek, {"risk": lambda params, p: jnp.nan * p["base"]}, "of the unclipped model"),
    ],
)
def test_a_curve_that_cannot_be_drawn_and_a_search_without_an_answer_are_refused(
    run, change, message
):
    with pytest.raises(ValueError, match=message):
        run(**change)
