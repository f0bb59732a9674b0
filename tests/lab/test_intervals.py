"""Intervals: their formulas, and their coverage by simulation."""

import numpy as np
import pytest
import scipy.stats

from lsa_lab.lab import mean_interval, median_interval, ratio_interval

DRAWS = 4000


def coverage(interval, draw, target, size):
    """Return the share of samples whose interval contains the target, and its standard error."""
    rng = np.random.default_rng(0)
    ends = np.array([interval(draw(rng, size)) for _ in range(DRAWS)])
    share = np.mean((ends[:, 0] <= target) & (target <= ends[:, 1]))
    return share, np.sqrt(share * (1 - share) / DRAWS)


def lognormal(rng, size):
    return rng.lognormal(size=size)


@pytest.mark.parametrize(
    ("interval", "draw", "target", "size", "expected"),
    [
        (mean_interval, lambda rng, size: rng.normal(size=size), 0.0, 9, 0.95),
        (ratio_interval, lognormal, 1.0, 9, 0.95),
        # Too small: why skewed samples take the log scale or the median.
        (mean_interval, lognormal, np.exp(0.5), 9, 0.836),
    ],
)
def test_intervals_cover_as_often_as_they_say(interval, draw, target, size, expected):
    share, error = coverage(interval, draw, target, size)
    assert abs(share - expected) < 4 * error


@pytest.mark.parametrize("draw", [lognormal, lambda rng, size: rng.standard_cauchy(size)])
def test_the_median_interval_covers_whatever_the_law(draw):
    target = 1.0 if draw is lognormal else 0.0
    share, error = coverage(median_interval, draw, target, 16)
    assert share > 0.95 - 4 * error
    assert share < 0.99


def test_formulas():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    expected = scipy.stats.t.interval(0.9, 3, x.mean(), scipy.stats.sem(x))
    np.testing.assert_allclose(mean_interval(x, 0.9), expected, rtol=1e-12)
    np.testing.assert_allclose(ratio_interval(x), np.exp(mean_interval(np.log(x))), rtol=1e-12)
    assert median_interval(np.arange(9.0)) == (1.0, 7.0)
    assert median_interval(np.arange(5.0)) == (-np.inf, np.inf)
    assert mean_interval([1.0]) == (-np.inf, np.inf)
    assert ratio_interval([1e-300, 1e300]) == (0.0, np.inf)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval([]), "expected one number for each unit"),
        (lambda: mean_interval([[1.0]]), "expected one number for each unit"),
        (lambda: median_interval([1.0, np.nan]), "1 of 2 samples are not finite"),
        (lambda: ratio_interval([1.0, 0.0]), "1 of 2 ratios are not positive"),
        (lambda: mean_interval([1.0, 2.0], 95), "confidence = 95"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
