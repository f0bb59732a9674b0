"""Intervals: their formulas, and their coverage by simulation."""

import numpy as np
import pytest
import scipy.stats

from lsa_lab.lab import mean_interval, median_interval, ratio_interval

DRAWS = 4000


def lognormal(rng, size):
    return rng.lognormal(size=size)


@pytest.mark.parametrize(
    ("interval", "draw", "target", "size", "expected"),
    [
        (mean_interval, lambda rng, size: rng.normal(size=size), 0.0, 9, 0.95),
        (ratio_interval, lognormal, 1.0, 9, 0.95),
        # Too small: why skewed samples take the log scale or the median.
        (mean_interval, lognormal, np.exp(0.5), 9, 0.836),
        # P(4 <= Binomial(16, 1/2) <= 12), whatever the law.
        (median_interval, lognormal, 1.0, 16, 0.9787),
        (median_interval, lambda rng, size: rng.standard_cauchy(size), 0.0, 16, 0.9787),
    ],
)
def test_intervals_cover_as_often_as_they_say(interval, draw, target, size, expected):
    rng = np.random.default_rng(0)
    ends = np.array([interval(draw(rng, size)) for _ in range(DRAWS)])
    share = np.mean((ends[:, 0] <= target) & (target <= ends[:, 1]))
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / DRAWS)


def test_formulas():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    expected = scipy.stats.t.interval(0.9, 3, x.mean(), scipy.stats.sem(x))
    np.testing.assert_allclose(mean_interval(x, 0.9), expected, rtol=1e-12)
    np.testing.assert_allclose(ratio_interval(x), np.exp(mean_interval(np.log(x))), rtol=1e-12)
    assert median_interval(np.arange(9.0)) == (1.0, 7.0)
    assert median_interval(np.arange(5.0)) == (-np.inf, np.inf)
    assert mean_interval([1.0]) == (-np.inf, np.inf)
    assert ratio_interval([1e-300, 1e300]) == (0.0, np.inf)


def test_refusals():
    with pytest.raises(ValueError, match="expected one number for each unit"):
        mean_interval([[1.0]])
    with pytest.raises(ValueError, match="1 of 2 ratios are not positive"):
        ratio_interval([1.0, 0.0])
    with pytest.raises(ValueError, match="confidence = 95"):
        median_interval([1.0, 2.0], 95)
