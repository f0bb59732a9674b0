"""Effective numbers by hand, and summaries that count the prompts that they leave out."""

import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.analyses import disparity

INF = np.inf
EPS = np.finfo(float).eps ** 0.5
summarise = jit_numpy(disparity.summarise)
effective_number = jit_numpy(disparity.effective_number)


def test_the_effective_number_of_equal_lone_and_mixed_demonstrations():
    sizes = np.array([[1.0, 1.0, 1.0, 1.0], [1e-300, 1e-300, 8.0, 1e-300], [1.0, 4.0, 1.0, 2.0]])
    mixed = -(4 / 8 * np.log(4 / 8) + 2 / 8 * np.log(2 / 8) + 2 / 8 * np.log(1 / 8))
    for shift in (0, 1e4, -1e4):  # neither scale nor overflow matters
        numbers = effective_number(np.log(sizes) + shift)
        np.testing.assert_allclose(numbers, [4, 1, np.exp(mixed)], rtol=1e-9)
    undefined = np.array([[-INF, -INF, -INF], [0.0, INF, 0.0], [0.0, np.nan, 0.0]])
    assert np.isnan(effective_number(undefined)).all()


ROWS = np.array(
    [
        [1.0, 2.0, 3.0],  # grows
        [1.0, 0.5, 2.0],  # ends larger, having fallen
        [-1.0, -0.5, 0.5],  # shrinks, and its order flips
        [1.0, 1.0, 1.0 + 1e-12],  # constant, up to rounding
        [1.0, 1e3, INF],  # overflows
        [np.nan, 1.0, 1.0],
    ]
)


def test_fractions_and_medians_are_of_the_prompts_that_stay_finite():
    summary, empty = summarise(ROWS), summarise(ROWS[4:])
    assert summary.dropped == empty.dropped == 2
    assert [summary.larger, summary.flips] == [0.5, 0.25]
    np.testing.assert_allclose(summary.median, [1.0, 0.75, 1.5])
    assert np.isnan([empty.larger, empty.flips, *empty.median]).all()
    with pytest.raises(AssertionError, match="one prompt a row"):
        disparity.summarise(ROWS[0])
    values = np.arange(12.0).reshape(3, 2, 2)
    values[1, 0, 1] = np.nan
    median, dropped = disparity.median_of_finite(values)
    assert dropped == 1
    np.testing.assert_allclose(median, [[4, 5], [6, 7]])


def test_changes_of_the_size_of_rounding_do_not_count():
    for name, last, steps in (
        ("larger", [1.0, 1.0], ([0, EPS], [0, 1e-7])),
        ("flips", [0.0, -1.0], ([0.5 * EPS, 0], [2 * EPS, 0])),
        ("flips", [1.0, 0.0], ([0, -0.5 * EPS], [0, -2 * EPS])),
    ):
        counts = [getattr(summarise(np.add([last], [step])), name) for step in steps]
        assert counts == [0, 1]
