"""Statistics of runs that choose among several numbers; one confidence for all that is printed."""

import math

import numpy as np
import pytest
import scipy.stats

from lsa_lab.judging import statistics
from lsa_lab.judging.claims import judge
from lsa_lab.judging.statements import Statement
from lsa_lab.judging.statistics import (
    best_elsewhere,
    jackknife,
    level,
    mean_interval,
    median_interval,
    worst,
    worst_elsewhere,
)


def test_a_choice_is_made_without_the_run_that_it_is_judged_by():
    samples = np.array([[9.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    np.testing.assert_array_equal(best_elsewhere(samples), [1.0, 0.0, 0.0])
    places = np.stack([samples, -samples], axis=1)  # each place chooses by itself
    np.testing.assert_array_equal(best_elsewhere(places)[:, 0], best_elsewhere(samples))


@pytest.mark.parametrize("confidence", [95, 1.0, 0.0, -0.5, math.nan, True, "0.95"])
def test_a_confidence_outside_zero_to_one_is_refused_with_what_to_give(confidence):
    statement = Statement("a", "derived here", "x is positive", "mean", at_least=0)
    for call in (
        lambda: mean_interval([1.0, 2.0, 3.0], confidence),
        lambda: median_interval(np.arange(12.0), confidence),
        lambda: level(confidence),
        lambda: judge([statement], {"a": [1.0, 2.0, 3.0]}, confidence),
    ):
        with pytest.raises(ValueError, match=r"between 0 and 1; for 95 % give \.95"):
            call()
    with pytest.raises(ValueError, match=r"overlap = -0\.1"):
        mean_interval([1.0, 2.0, 3.0], overlap=-0.1)


def test_a_place_that_is_worst_elsewhere_is_chosen_without_the_run():
    samples = np.array([[9.0, 1.0], [0.0, 2.0], [0.0, 2.0]])
    np.testing.assert_array_equal(worst_elsewhere(samples, np.mean), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(worst(samples, np.mean), [9.0, 0.0, 0.0])  # Control: with it


def test_splits_of_one_table_have_a_wider_interval():
    rng = np.random.default_rng(0)
    hits = {0.0: 0, 1.0: 0}
    for _ in range(1000):
        rows = rng.normal(size=60)
        # Each run: the mean over a random half of the rows, for testing.
        means = [rows[rng.permutation(60)[:30]].mean() for _ in range(12)]
        for overlap in hits:
            low, high = mean_interval(means, overlap=overlap)
            hits[overlap] += low <= 0 <= high
    assert hits[1.0] / 1000 > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 1000)
    assert hits[0.0] / 1000 < 0.9  # Control: as if the runs were independent


def test_rank_correlations_are_those_of_scipy_with_equal_numbers_and_without():
    rng = np.random.default_rng(0)
    for few in (3, 50):  # of so many values some come again
        left, right = rng.integers(0, few, (2, 20))
        expected = scipy.stats.spearmanr(left, right).statistic
        assert statistics.spearman(left, right) == pytest.approx(expected, abs=1e-12)
    assert statistics.spearman([1, 2, 3], [5, 5, 5]) == 0
    assert math.isnan(statistics.spearman([1, 2, 3], [5, math.nan, 5]))


def test_pseudo_values_of_a_mean_are_the_runs_and_those_of_a_square_are_nearer_to_it():
    runs = np.random.default_rng(2).standard_normal(7)
    np.testing.assert_allclose(jackknife(lambda mean: mean, runs), runs)
    # The bias of mean² is var / R, which the jackknife takes away.
    unbiased = runs.mean() ** 2 - runs.var(ddof=1) / 7
    np.testing.assert_allclose(jackknife(np.square, runs).mean(), unbiased)
