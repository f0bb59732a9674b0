"""`output_scaling` and `condition_numbers`: maps of known answers, searches and ranks by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.clipping import condition_numbers, output_scaling
from experiments.clipping.output_scaling import fit_map
from lsa_lab.prompts import Prompt


@pytest.mark.parametrize(("affine", "shift"), [(False, 0.0), (True, 0.3)])
def test_a_map_that_is_true_is_found(affine, shift):
    answers = np.random.default_rng(0).normal(size=(2, 32))
    targets = 0.5 * answers + shift
    mapped = fit_map(output_scaling.REGRESSION, affine, answers, targets[0])
    np.testing.assert_allclose(mapped, targets[1])
    if affine:  # control: a factor alone does not find it
        factor = fit_map(output_scaling.REGRESSION, False, answers, targets[0])
        assert np.abs(factor - targets[1]).max() > 0.1
    else:  # in two classes the one number is a threshold
        answers, targets = np.array([[3.0, 5.0, 1.0, -1.0]] * 2), np.array([1.0, 1.0, -1.0, -1.0])
        mapped = fit_map(output_scaling.CLASSES, False, answers, targets)
        np.testing.assert_allclose(mapped, answers[1] - 2.0)


class Answers:
    """Edits of which the second is best on validation for run 0, and none for run 1."""

    places = np.array([[1, 2], [1, 2]])

    def predict(self, edit, places, batch):
        return np.take_along_axis(np.asarray(batch.x[:, :, 0, 0]), np.asarray(places), 1)[..., None]


def test_the_best_edit_is_chosen_on_validation_and_none_if_none_gains():
    def write_prompts(answers):  # the answers after no edit, the first and the second
        x = jnp.asarray(answers)[:, :, None, None]
        return Prompt(x, jnp.ones((2, 1, 1)), x[:, :, 0], jnp.array([[1.0], [0.0]]))

    validation = write_prompts([[0.0, 0.5, 0.9], [0.1, 0.5, -0.2]])
    test = write_prompts([[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    kind, edit = output_scaling.REGRESSION, output_scaling.EDITS[0]
    before, after = output_scaling.search(Answers(), kind, edit, validation, test)
    np.testing.assert_allclose(before, [[0.9], [0.1]])
    np.testing.assert_allclose(after, [[6.0], [7.0]])


def make_array(values):  # [R, L, M]
    return xr.DataArray(values, dims=("run", "layer", "module"))


def test_ranks_ignore_what_kinds_of_matrices_differ_in():
    depth, offset = np.arange(4.0)[:, None] * np.ones(2), np.array([0.0, 100.0])
    left = make_array([depth + offset, depth])
    right = make_array([-depth - 3 * offset, depth])
    np.testing.assert_allclose(condition_numbers.correlate_centred(left, right), [-1.0, 1.0])


def test_layers_are_compared_with_the_last_and_with_the_others():
    numbers = make_array([[[5.0, 1.0], [2.0, 9.0], [3.0, 2.0]]])
    harm = make_array([[[8.0, 4.0], [2.0, 2.0], [2.0, 1.0]]])
    part = xr.Dataset({"condition": numbers.expand_dims(stage=["after"]), "harm": harm})
    chosen = condition_numbers.chosen_over_last(xr.DataTree.from_dict({"model": part}), "model")
    # The largest number: layer 1 for the first matrix, 2 for the second; ratios 8 / 2 and 2 / 1.
    np.testing.assert_allclose(chosen, [8**0.5])
    logs = make_array([[[1.0], [2.0], [4.0], [9.0]]])
    np.testing.assert_allclose(condition_numbers.compare_ends(logs).values, [[5.0]])
    np.testing.assert_allclose(condition_numbers.compare_last(logs).values, [[9 - 7 / 3]])
