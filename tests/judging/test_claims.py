"""Intervals cover, verdicts follow from intervals, and NaN is refused."""

import math

import numpy as np
import pytest

from lsa_lab.judging.claims import Statement, judge, verdict_of
from lsa_lab.judging.statistics import UNKNOWN, mean_interval, median_interval


@pytest.mark.parametrize(
    ("interval", "bounds", "verdict"),
    [
        ((0.1, 0.2), {"at_most": 0.2}, "holds"),
        ((0.1, 0.2), {"at_most": 0.15}, "undecided"),
        ((0.1, 0.2), {"at_most": 0.05}, "fails"),
        ((0.1, 0.2), {"at_least": 0.1}, "holds"),
        ((0.1, 0.2), {"at_least": 0.3}, "fails"),
        ((0.9, 1.1), {"at_least": 0.8, "at_most": 1.2}, "holds"),
        ((0.7, 1.3), {"at_least": 0.8, "at_most": 1.2}, "undecided"),
        ((1.3, 1.4), {"at_least": 0.8, "at_most": 1.2}, "fails"),
        (UNKNOWN, {"at_most": 1e9}, "undecided"),
    ],
)
def test_a_verdict_is_about_the_whole_interval(interval, bounds, verdict):
    assert verdict_of(interval, **bounds) == verdict


def test_each_statement_is_judged_by_its_samples_unless_there_is_nothing_to_judge():
    falls, rises = (
        Statement(id, "derived here", f"It {id}", "the change", **bounds)
        for id, bounds in (("falls", {"at_most": 0.0}), ("rises", {"at_least": 0.0}))
    )
    samples = [-1.0, -1.1, -0.9]
    claims = judge([falls, rises], {"falls": samples, "rises": samples})
    assert [(c.id, c.verdict) for c in claims] == [("falls", "holds"), ("rises", "fails")]
    assert [c.id for c in judge([falls, rises], {"falls": samples, "rises": None})] == ["falls"]
    with pytest.raises(ValueError, match=r"no samples of \['rises'\]"):
        judge([falls, rises], {"falls": samples})
    with pytest.raises(ValueError, match=r"samples without a statement: \['rises'\]"):
        judge([falls], {"falls": samples, "rises": None})


def test_the_mean_has_the_interval_of_student():
    # Two closed forms: t_1(p) = tan(π (p - 1/2)) and t_2(p) = (2p - 1) / √(2 p (1 - p)).
    p = 0.975
    x = np.array([1.0, 4.0])
    half = math.tan(math.pi * (p - 0.5)) * x.std(ddof=1) / math.sqrt(2)
    np.testing.assert_allclose(mean_interval(x), (2.5 - half, 2.5 + half), rtol=1e-10)
    x = np.array([1.0, 4.0, 7.0])
    half = (2 * p - 1) / math.sqrt(2 * p * (1 - p)) * x.std(ddof=1) / math.sqrt(3)
    np.testing.assert_allclose(mean_interval(x), (4 - half, 4 + half), rtol=1e-10)
    assert mean_interval([3.0]) == UNKNOWN


def test_the_interval_of_a_median_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    skewed = rng.exponential(1.0, (2000, 12))
    four_errors = 4 * math.sqrt(0.05 * 0.95 / 2000)
    median = np.mean([low <= math.log(2) <= high for low, high in map(median_interval, skewed)])
    assert median > 0.95 - four_errors
    # Control: for the mean of a skewed law the interval of its median is the wrong one.
    wrong = np.mean([low <= 1.0 <= high for low, high in map(median_interval, skewed)])
    assert wrong < 0.95 - four_errors


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("interval", [mean_interval, median_interval])
def test_a_run_that_diverged_is_never_averaged_away(interval, bad):
    with pytest.raises(ValueError, match="1 of 3 samples are NaN or infinite"):
        interval([1.0, bad, 2.0])
    with pytest.raises(ValueError, match="at least one run"):
        interval([])


def statement(**changes):
    fields = {"id": "x", "source": "derived here", "says": "It is", "measured": "the risk"}
    return Statement(**(fields | changes))


def judged(samples, **changes):
    (claim,) = judge([statement(**changes)], {"x": samples})
    return claim


@pytest.mark.parametrize(
    ("statistic", "samples", "value", "interval"),
    [
        ("mean", [0.1, 0.2, 0.3], 0.2, mean_interval([0.1, 0.2, 0.3])),
        ("median", [0.1, 0.2, 0.9], 0.2, UNKNOWN),
        ("value", 0.2, 0.2, (0.2, 0.2)),
        ("estimate", (0.2, 0.1), 0.2, (0.2 - 0.196, 0.2 + 0.196)),
    ],
)
def test_every_statistic_has_its_interval(statistic, samples, value, interval):
    claim = judged(samples, statistic=statistic, at_most=1.0)
    assert claim.value == pytest.approx(value)
    assert claim.interval == pytest.approx(interval)


def test_equivalence_takes_a_margin_in_either_direction():
    assert judged([0.01, -0.01, 0.0], margin=0.1).verdict == "holds"
    assert judged([0.01, -0.01, 0.0], margin=0.001).verdict == "undecided"
    near = statement(statistic="ratio", margin=0.25)
    assert near.bounds == (0.8, 1.25)


def test_an_estimate_says_why_it_has_no_bound_and_gets_no_verdict():
    claim = judged([1.0, 1.1, 1.2], unjudged="the bound lay upon the effect")
    assert (claim.verdict, claim.thin) == ("estimated", False)
    assert claim.criterion.endswith("estimated without a bound: the bound lay upon the effect")
    with pytest.raises(ValueError, match="or say why it is unjudged"):
        statement(at_most=1.0, unjudged="and yet it has one")


def test_a_statement_that_nothing_can_judge_is_refused():
    with pytest.raises(ValueError, match="give at_least, at_most or both, or a margin"):
        statement()
    with pytest.raises(ValueError, match="give at_least, at_most or both, or a margin"):
        statement(at_most=1.0, margin=0.1)
    with pytest.raises(ValueError, match="no number is >= 2 and <= 1"):
        statement(at_least=2.0, at_most=1.0)
    with pytest.raises(ValueError, match="statistic 'mode': choose mean, median"):
        statement(statistic="mode", at_most=1.0)
    with pytest.raises(ValueError, match="two statements have the same id"):
        judge([statement(at_most=1.0)] * 2, {"x": [0.0]})
    with pytest.raises(ValueError, match="x: 1 of 2 samples are NaN"):
        judged([0.0, math.nan], at_most=1.0)
    with pytest.raises(ValueError, match="expected one finite number"):
        judged([0.0, 1.0], statistic="value", at_most=1.0)


def test_a_ratio_and_its_inverse_lead_to_the_same_verdict():
    ratios = np.array([0.5, 0.6, 0.9, 0.7])
    claim = judged(ratios, statistic="ratio", at_most=1.0)
    inverse = judged(1 / ratios, statistic="ratio", at_least=1.0)
    assert claim.verdict == inverse.verdict == "holds"
    assert claim.value == pytest.approx(np.prod(ratios) ** 0.25)
    assert claim.interval == pytest.approx(tuple(1 / end for end in inverse.interval[::-1]))
    assert judged(ratios[:1], statistic="ratio", at_most=1.0).interval == (0, math.inf)
    with pytest.raises(ValueError, match="2 of 3 samples are not positive: no ratio"):
        judged([1.0, 0.0, -1.0], statistic="ratio", at_most=1.0)


@pytest.mark.parametrize(
    ("interval", "bounds", "thin"),
    [
        ((0.0, 1.0), {"at_least": -0.05}, True),
        ((0.0, 1.0), {"at_least": -0.2}, False),
        ((0.0, 1.0), {"at_most": -0.05}, True),
        ((0.0, 1.0), {"at_most": -0.2}, False),
        ((0.0, 1.0), {"at_least": 0.05}, False),  # undecided
    ],
)
def test_a_verdict_is_thin_if_its_interval_ends_beside_the_bound(interval, bounds, thin):
    middle = sum(interval) / 2
    error = (interval[1] - middle) / 1.96
    claim = judged((middle, error), statistic="estimate", **bounds)
    assert claim.thin == thin


def test_a_ratio_is_thin_on_the_scale_of_logarithms():
    samples = np.exp([0.2, 0.4, 0.6])
    low, high = (math.log(end) for end in judged(samples, statistic="ratio", at_most=9).interval)
    beside, away = (math.exp(high + share * (high - low)) for share in (0.09, 0.11))
    assert judged(samples, statistic="ratio", at_most=beside).thin
    assert not judged(samples, statistic="ratio", at_most=away).thin


def test_what_an_undecided_claim_says_would_decide_it():
    claim = judged((0.1, 0.1), statistic="estimate", at_least=0)
    assert claim.verdict == "undecided"
    assert claim.runs_factor == pytest.approx(1.96**2)
    enough, few = (
        judged((0.1, 0.1 / math.sqrt(share * claim.runs_factor)), statistic="estimate", at_least=0)
        for share in (1.01, 0.99)
    )
    assert (enough.verdict, few.verdict) == ("holds", "undecided")
    assert math.isnan(enough.runs_factor)
    assert judged([1.0], at_least=0).runs_factor == math.inf


@pytest.mark.parametrize(("confidence", "own", "errors"), [(0.999, 1.96, 3.2905), (0.9, 2.5, 2.5)])
def test_an_estimate_is_as_wide_as_the_confidence_or_its_own_errors_ask(confidence, own, errors):
    rows = [statement(statistic="estimate", at_least=0, standard_errors=own)]
    (claim,) = judge(rows, {"x": (0.2, 0.1)}, confidence)
    assert claim.interval == pytest.approx((0.2 - errors / 10, 0.2 + errors / 10), abs=1e-5)
