"""The searches on a toy whose best edit is known, and their honesty about selection."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.analyses import clipping
from lsa_lab.judging import claims

L, SIZE, B = 3, 4, 40
RATES = clipping.every_rate(SIZE)


def spectrum(*values):
    return np.diag(np.array(values, float))


# Only the first singular value of each layer is signal; the others add to the error.
SPECTRA = ((1.0, 0.5, 0.4, 0.3), (1.0, 0.1, 0.02, 0.01), (1.0, 0.3, 0.1, 0.02))
PARAMS = {"mlp_in": np.stack([spectrum(*values) for values in SPECTRA])}


def prompts_of(seed, noise=0.0):
    rng = np.random.default_rng(seed)
    return {"base": 3 + rng.random(B), "noise": noise * rng.normal(size=(B, L, SIZE))}


def risk(params, prompts):
    """Each prompt's base, plus what the trailing entries add, plus what each entry does to it."""
    diagonal = jnp.diagonal(params["mlp_in"], axis1=-2, axis2=-1)  # [L, r]
    lost = jnp.abs(1 - diagonal[:, 0]).sum()
    kept = jnp.where(jnp.abs(diagonal) > 1e-9, 1.0, 0.0)
    noise = jnp.einsum("lr,blr->b", kept, prompts["noise"])
    return prompts["base"] + lost + diagonal[:, 1:].sum() + noise


def test_algorithm_one_takes_the_deepest_of_the_worst_conditioned_layers():
    conditions = clipping.condition_numbers(PARAMS, "mlp_in")
    np.testing.assert_allclose(conditions, [1 / 0.3, 100, 50])
    for top_k, layer in ((1, 1), (2, 2), (3, 2)):
        found = clipping.search(
            risk, PARAMS, prompts_of(0), prompts_of(1), modules="mlp_in", rates=RATES, top_k=top_k
        )
        assert found.edits == (clipping.Edit((layer,), ("mlp_in",), 0.75),)
        assert found.validation_gain == pytest.approx(sum(SPECTRA[layer][1:]))
        assert found.test_gain == pytest.approx(found.validation_gain)
        assert found.optimism == pytest.approx(0)
        assert found.test_risk == pytest.approx(
            np.mean(prompts_of(1)["base"]) + sum(sum(values[1:]) for values in SPECTRA)
        )


def test_the_smallest_of_equally_good_rates_wins():
    rates = (0.99, 0.9, 0.76, 0.95)  # rank 1, all of them
    found = clipping.search(
        risk, PARAMS, prompts_of(0), prompts_of(1), modules="mlp_in", rates=rates
    )
    assert found.edits[0].rate == 0.76


def test_where_nothing_helps_nothing_is_edited():
    def harmed(params, prompts):
        return prompts["base"] - params["mlp_in"].sum()

    for find in (clipping.search, clipping.search_everywhere, clipping.compose):
        modules = "mlp_in" if find is clipping.search else ["mlp_in"]
        found = find(harmed, PARAMS, prompts_of(0), prompts_of(1), modules=modules, rates=RATES)
        assert found.edits == ()
        assert found.validation_gain == found.test_gain == 0
        assert found.test_interval == (0, 0)


def test_searching_everywhere_finds_the_best_single_edit():
    found = clipping.search_everywhere(
        risk, PARAMS, prompts_of(0), prompts_of(1), modules=["mlp_in", "mlp"], rates=RATES
    )
    assert found.edits == (clipping.Edit((0,), ("mlp_in",), 0.75),)
    assert found.validation_gain == pytest.approx(1.2)
    assert len(found.tried) == 4 * 3 * 2
    assert found.forward_passes == B * (1 + 3 * 3) + 2 * B  # "mlp" is the same matrix


def test_composition_goes_from_the_last_layer_to_the_first():
    found = clipping.compose(
        risk, PARAMS, prompts_of(0), prompts_of(1), modules=["mlp_in"], rates=RATES
    )
    assert found.edits == tuple(clipping.Edit((t,), ("mlp_in",), 0.75) for t in (2, 1, 0))
    assert found.validation_gain == pytest.approx(sum(sum(values[1:]) for values in SPECTRA))
    # The model, three ranks at the last layer, and at each other layer three more.
    assert found.forward_passes == B * (1 + 3 * 3) + 2 * B


@pytest.mark.parametrize("average", ["mean", "median"])
def test_the_interval_is_that_of_the_paired_gains(average):
    validation, test = prompts_of(0, 0.1), prompts_of(1, 0.1)
    found = clipping.search(
        risk, PARAMS, validation, test, modules="mlp_in", rates=RATES, average=average
    )
    (edit,) = found.edits
    edited = clipping.clip(PARAMS, edit.layers, edit.modules, edit.rate)
    gains = np.asarray(risk(PARAMS, test) - risk(edited, test))
    assert found.test_gain == pytest.approx(getattr(np, average)(gains))
    interval = getattr(claims, f"{average}_interval")(gains)
    assert found.test_interval == pytest.approx(interval)
    assert found.optimism == pytest.approx(found.validation_gain - found.test_gain) != 0


def test_nan_is_not_a_candidate_and_no_error_is_below_all_others():
    def fails_when_cut(params, prompts):
        return prompts["base"] / jnp.where(params["mlp_in"][2, 3, 3] > 1e-9, 1.0, jnp.nan)

    def wins_when_cut(params, prompts):
        return prompts["base"] - jnp.where(params["mlp_in"][2, 3, 3] > 1e-9, 0.0, jnp.inf)

    def fails_always(params, prompts):
        return prompts["base"] * jnp.nan

    for fails, message in (
        (fails_when_cut, "is NaN"),
        (wins_when_cut, "is minus infinity"),
        (fails_always, "unclipped model are NaN"),
        (lambda params, prompts: prompts["base"].mean(), "the error of each prompt"),
    ):
        with pytest.raises(ValueError, match=message):
            clipping.search(
                fails, PARAMS, prompts_of(0), prompts_of(1), modules="mlp_in", rates=RATES
            )


def test_a_searched_test_and_unknown_choices_are_refused():
    validation = prompts_of(0)
    with pytest.raises(ValueError, match="same prompts"):
        clipping.search(risk, PARAMS, validation, validation, modules="mlp_in")
    for more, message in (
        ({"top_k": 4}, "has 3 layers"),
        ({"average": "mode"}, "choose one of"),
        ({"rates": ()}, "no rates"),
    ):
        with pytest.raises(ValueError, match=message):
            clipping.search(risk, PARAMS, validation, prompts_of(1), modules="mlp_in", **more)


def test_condition_numbers_of_several_matrices_are_their_largest():
    params = {
        "w_kq": np.stack([np.eye(2), np.diag([3.0, 1])])[:, None],
        "w_pv": np.ones((2, 1, 2, 2)),
    }
    assert clipping.condition_numbers(params, "w_kq").tolist() == pytest.approx([1, 3])
    assert (clipping.condition_numbers(params, "attention") > 1e15).all()


@pytest.mark.parametrize("find", [clipping.search, clipping.search_everywhere, clipping.compose])
def test_the_errors_of_an_edit_may_be_judged_layer_by_layer(find, tmp_path):
    """As those of a large model are: a matrix of one layer is decomposed when it is cut."""
    params = {name: jnp.asarray(matrix) for name, matrix in PARAMS.items()}
    calls = []

    def errors(pieces, keep, prompts):
        calls.append(keep)
        layers = [clipping.rebuild_layer(params, pieces, keep, layer) for layer in range(L)]
        return risk({"mlp_in": jnp.stack([layer["mlp_in"] for layer in layers])}, prompts)

    modules = "mlp_in" if find is clipping.search else ["mlp_in"]
    options = {"modules": modules, "rates": RATES}
    prompts = prompts_of(0, 0.05), prompts_of(1, 0.05)
    expected = find(risk, params, *prompts, **options)
    split = functools.partial(clipping.Factors, tmp_path)
    found = find(None, params, *prompts, split=split, errors=errors, **options)
    assert found.edits == expected.edits
    assert found.forward_passes == expected.forward_passes == len(calls) * B
    assert found.test_gain == pytest.approx(expected.test_gain)
    assert len(list(tmp_path.glob("*.svd"))) == L
    for wrong in ({"errors": errors}, {"risk": None}):
        given = {"risk": risk} | wrong
        with pytest.raises(ValueError, match="give a risk of params, or errors of an edit"):
            find(given.pop("risk"), params, *prompts, **options, **given)
