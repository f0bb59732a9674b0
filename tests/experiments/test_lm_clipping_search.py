"""`lm_clipping_search`: condition numbers, what is tried, what is best, and one test of it."""

import numpy as np
import xarray as xr

from experiments.language import decoders
from experiments.language.lm_clipping_search import claims, compute
from experiments.language.lm_clipping_search.config import SEARCHES, TIERS
from lsa_lab.judging.statements import samples_of

TINY = TIERS["smoke"]


def scores_of(margins):
    return np.stack([np.zeros(len(margins)), margins], axis=1)


def test_condition_numbers_are_those_of_a_layers_worst_matrix():
    params = decoders.decoder(TINY).params
    ours = compute.condition_numbers(params, "MLP")
    names = ("mlp_in", "mlp_gate", "mlp_out")
    every = [[np.linalg.cond(np.asarray(w, float)) for w in getattr(params, n)] for n in names]
    np.testing.assert_allclose(ours, np.max(every, axis=0))
    assert ours.shape == (len(params.mlp_in),)


def test_the_deepest_of_the_worst_conditioned_layers_is_tried_the_smallest_rates_first():
    conditions = {"attention": np.array([9.0, 2, 8, 7]), "MLP": np.array([1.0, 5, 2, 6])}
    tried = compute.candidates(TINY, conditions)
    assert tried["Algorithm 1, attention"] == [(2, "attention", 0.5)]
    assert tried["Algorithm 1, MLP"] == [(3, "mlp", 0.5)]
    first = [(layer, part, 0.5) for layer in (1, 3) for part in ("attention", "mlp")]
    second = [(layer, part, 0.75) for layer in (1, 3) for part in ("attention", "mlp")]
    assert tried["more layers, both parts"] == first + second


def test_the_first_of_the_largest_gains_is_best_and_none_where_nothing_gains():
    assert compute.best("abc", {"a": 0.1, "b": 0.3, "c": 0.3}) == "b"
    assert compute.best("ab", {"a": -0.1, "b": 0.0}) is None


def test_a_threshold_is_fitted_on_validation_and_judged_on_test():
    labels = np.array([1, 1, 0, 0])
    validation = scores_of([3.0, 5, 1, -1])  # the threshold between 1 and 3 is 2
    test = scores_of([2.5, 1.5, 0.5, -1, 9.0, 9.0, 9.0])  # and three texts that say nothing
    accuracy, auc, fitted = compute.tested(test, labels, validation, labels)
    assert (accuracy, auc, fitted) == (0.75, 1.0, 0.75)
    turned = compute.tested(test, labels, scores_of([-3.0, -5, -7, -9]), labels)
    np.testing.assert_allclose(turned, [0.75, 1.0, 0.5])  # the threshold -6: all are above


def test_calibration_reads_the_texts_that_say_nothing_at_the_end():
    labels = np.array([1, 1, 0, 0])
    free = [1.0, 1.0, 1.0]
    assert compute.calibrated(scores_of([2.5, 1.5, 0.5, -1, *free]), labels) == 1.0
    assert compute.calibrated(scores_of([2.5, 0.9, 0.5, 1.1, *free]), labels) == 0.5


def test_the_wide_search_is_judged_beside_nothing_and_beside_calibration():
    rng = np.random.default_rng(0)
    axes, shape = ("task", "run", "search", "reading"), (2, 3, 3, 3)
    dataset = xr.Dataset(
        {
            "clipped": (axes, rng.uniform(size=shape)),
            "validation_gain": (axes[:3], rng.uniform(size=shape[:3])),
            "unclipped": (("task", "run", "reading"), rng.uniform(size=(2, 3, 3))),
            "calibrated": (axes[:2], rng.uniform(size=shape[:2])),
        },
        {"search": list(SEARCHES), "reading": ["accuracy", "auc", "fitted"]},
    )
    ours = samples_of(claims.statements(TINY), claims.numbers(dataset))
    wide = dataset.clipped.values[:, :, 2, 0]
    np.testing.assert_allclose(
        ours["wider_gains"], (wide - dataset.unclipped.values[..., 0]).mean(0)
    )
    np.testing.assert_allclose(
        ours["calibration_wider"], (dataset.calibrated.values - wide).mean(0)
    )
