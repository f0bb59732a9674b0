"""Statistics of independent runs that choose among several numbers of each run."""

import numpy as np
import pytest

from lsa_lab.statistics import best_elsewhere


def test_a_choice_is_made_without_the_run_that_it_is_judged_by():
    samples = np.array([[9.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    np.testing.assert_array_equal(best_elsewhere(samples), [1.0, 0.0, 0.0])
    places = np.stack([samples, -samples], axis=1)  # each place chooses by itself
    np.testing.assert_array_equal(best_elsewhere(places)[:, 0], best_elsewhere(samples))


def test_control_noise_gains_nothing_where_the_best_of_each_run_gains():
    noise = np.random.default_rng(0).normal(size=(1000, 20))
    assert noise.max(1).mean() > 1
    assert abs(best_elsewhere(noise).mean()) < 0.2


@pytest.mark.parametrize("samples", [[[1.0, 2.0]], [[np.nan, 1.0], [1.0, 1.0], [1.0, 2.0]]])
def test_one_run_and_unknown_means_are_refused(samples):
    with pytest.raises(ValueError, match=r"two runs|NaN"):
        best_elsewhere(samples)
