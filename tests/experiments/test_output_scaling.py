"""`output_scaling` and `condition_numbers`: maps of known answers, searches and ranks by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.clipping import condition_numbers, output_scaling
from lsa_lab.prompts import Prompt


@pytest.mark.parametrize(("affine", "shift"), [(False, 0.0), (True, 0.3)])
def test_a_map_that_is_true_is_found(affine, shift):
    answers = np.random.default_rng(0).normal(size=(2, 32))
    targets = 0.5 * answers + shift
    mapped = output_scaling.fit_map(output_scaling.REGRESSION, affine, answers, targets[0])
    np.testing.assert_allclose(mapped, targets[1])
    if affine:  # control: a factor alone does not find it
        factor = output_scaling.fit_map(output_scaling.REGRESSION, False, answers, targets[0])
        assert np.abs(factor - targets[1]).max() > 0.1


def test_a_threshold_is_the_one_number_of_two_classes():
    answers, targets = np.array([[3.0, 5.0, 1.0, -1.0]] * 2), np.array([1.0, 1.0, -1.0, -1.0])
    mapped = output_scaling.fit_map(output_scaling.CLASSES, False, answers, targets)
    np.testing.assert_allclose(mapped, answers[1] - 2.0)


class Answers:
    """Edits of which the second is best on validation for run 0, and none for run 1."""

    places = np.array([[1, 2], [1, 2]])

    def predict(self, edit, places, batch):
        return np.take_along_axis(np.asarray(batch.x[:, :, 0, 0]), np.asarray(places), 1)[..., None]


def test_the_best_edit_is_chosen_on_validation_and_none_if_none_gains():
    targets = jnp.array([[1.0], [0.0]])

    def prompts(answers):  # the answers after no edit, the first and the second
        x = jnp.asarray(answers)[:, :, None, None]
        return Prompt(x, jnp.ones((2, 1, 1)), x[:, :, 0], targets)

    validation, test = (
        prompts(answers)
        for answers in ([[0.0, 0.5, 0.9], [0.1, 0.5, -0.2]], [[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    )
    kind, edit = output_scaling.REGRESSION, output_scaling.EDITS[0]
    before, after = output_scaling.search(Answers(), kind, edit, validation, test)
    np.testing.assert_allclose(before, [[0.9], [0.1]])
    np.testing.assert_allclose(after, [[6.0], [7.0]])


def test_models_worse_than_the_answer_zero_are_left_out():
    score = np.array([[[2.0, 1.0], [6.0, 1.0], [3.0, 9.0]]])[..., None]  # (shift, run, rule, ...)
    part = xr.Dataset(
        {
            "score": (("shift", "run", "rule", "reading"), score),
            "able": (("shift", "run"), [[True, True, False]]),
        },
        {"shift": ["as trained"], "rule": ["Algorithm 1", "unedited"], "reading": ["risk"]},
    )
    result = xr.DataTree.from_dict(dict.fromkeys(output_scaling.MODELS, part))
    pair = dict(rule="Algorithm 1", other="unedited")
    np.testing.assert_allclose(output_scaling.risk_ratio(result, "as trained", **pair), [2.0, 6.0])
    np.testing.assert_allclose(output_scaling.difference(result, "risk", **pair), [1.0, 5.0])
    assert output_scaling.risk_ratio(result, "no noise", **pair) is None


def conditions(values):  # [R, L, M]
    return xr.DataArray(values, dims=("run", "layer", "module"))


def test_ranks_ignore_what_kinds_of_matrices_differ_in():
    depth = np.arange(4.0)[:, None] * np.ones(2)
    offset = np.array([0.0, 100.0])
    ranks = condition_numbers.correlate_centred(
        conditions([depth + offset, depth]), conditions([-depth - 3 * offset, depth])
    )
    np.testing.assert_allclose(ranks, [-1.0, 1.0])


def test_the_layer_with_the_largest_condition_number_is_compared_with_the_last():
    numbers = conditions([[[5.0, 1.0], [2.0, 9.0], [3.0, 2.0]]])
    harm = conditions([[[8.0, 4.0], [2.0, 2.0], [2.0, 1.0]]])
    part = xr.Dataset({"condition": numbers.expand_dims(stage=["after"]), "harm": harm})
    result = xr.DataTree.from_dict({"model": part})
    # Layer 1 for the first matrix, layer 2 for the second: the ratios 8 / 2 and 2 / 1.
    chosen = condition_numbers.chosen_over_last(result, "model")
    np.testing.assert_allclose(chosen, [8**0.5])


def test_last_half_and_last_layer_are_compared_with_the_others():
    logs = conditions([[[1.0], [2.0], [4.0], [9.0]]])
    np.testing.assert_allclose(condition_numbers.compare_ends(logs).values, [[5.0]])
    np.testing.assert_allclose(condition_numbers.compare_last(logs).values, [[9 - 7 / 3]])
