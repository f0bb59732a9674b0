"""Effective numbers by hand, and summaries that count the prompts that they leave out."""

import jax
import numpy as np
import pytest

from lsa_lab.analyses import disparity

INF = np.inf
EPS = np.finfo(float).eps ** 0.5
summarise = jax.jit(disparity.summarise)


def test_the_effective_number_of_equal_lone_and_mixed_demonstrations():
    sizes = np.array([[1.0, 1.0, 1.0, 1.0], [1e-300, 1e-300, 8.0, 1e-300], [1.0, 4.0, 1.0, 2.0]])
    mixed = -(4 / 8 * np.log(4 / 8) + 2 / 8 * np.log(2 / 8) + 2 / 8 * np.log(1 / 8))
    for shift in (0, 1e4, -1e4):  # neither scale nor overflow matters
        numbers = disparity.effective_number(np.log(sizes) + shift)
        np.testing.assert_allclose(numbers, [4, 1, np.exp(mixed)], rtol=1e-9)
    undefined = np.array([[-INF, -INF, -INF], [0.0, INF, 0.0], [0.0, np.nan, 0.0]])
    assert np.isnan(jax.jit(disparity.effective_number)(undefined)).all()


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
    for function in (disparity.summarise, summarise):
        summary = function(ROWS)
        assert summary.dropped == 2
        assert [summary.larger, summary.flips] == [0.5, 0.25]
        np.testing.assert_allclose(summary.median, [1.0, 0.75, 1.5])
    empty = summarise(ROWS[4:])
    assert empty.dropped == 2
    assert np.isnan([empty.larger, empty.flips, *empty.median]).all()
    with pytest.raises(AssertionError, match="one prompt a row"):
        disparity.summarise(ROWS[0])


@pytest.mark.parametrize(
    ("row", "name", "expected"),
    [
        ([1.0, 1 + EPS], "larger", 0),
        ([1.0, 1 + 1e-7], "larger", 1),
        ([0.5 * EPS, -1.0], "flips", 0),
        ([2 * EPS, -1.0], "flips", 1),
        ([1.0, -0.5 * EPS], "flips", 0),
        ([1.0, -2 * EPS], "flips", 1),
    ],
)
def test_changes_of_the_size_of_rounding_do_not_count(row, name, expected):
    assert getattr(summarise(np.array([row])), name) == expected


def test_the_median_counts_the_prompts_it_leaves_out():
    values = np.arange(12.0).reshape(3, 2, 2)
    values[1, 0, 1] = np.nan
    median, dropped = disparity.median_of_finite(values)
    assert dropped == 1
    np.testing.assert_allclose(median, [[4, 5], [6, 7]])
