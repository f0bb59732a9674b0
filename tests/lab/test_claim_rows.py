"""Claims: rows, verdicts, cells, and what cannot be evaluated."""

import numpy as np
import pytest
import xarray as xr

from lsa_lab.lab import Claim, mean_interval
from lsa_lab.lab.claims import ClaimError

X = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01, 0.99])
RESULT = xr.Dataset(
    {"x": (("place", "run"), np.stack([X, X + 5, X * np.nan]))}, {"place": ["a", "b", "bad"]}
)


def claim(**more):
    fields = {"sample": lambda result: result.x.sel(place="a").values} | more
    return Claim("id", "derived here", "A sentence", "the quantity", **fields)


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ({"at_least": 0.5}, "holds"),
        ({"at_most": 0.5}, "fails"),
        ({"at_least": 1.0}, "undecided"),
        ({"at_least": 0.5, "at_most": 1.5}, "holds"),
        ({}, "estimate"),
    ],
)
def test_a_verdict_compares_the_whole_interval_with_the_bounds(bounds, verdict):
    (row,) = claim(**bounds).judge(RESULT)
    assert row["verdict"] == verdict
    assert (row["low"], row["high"]) == mean_interval(X)
    assert row["runs"] == 9
    assert row["value"] == pytest.approx(X.mean())


def by_place(**more):
    def sample(result, place):
        return result.x.sel(place=place).values if place in result.place else None

    return claim(sample=sample, over={"place": ("a", "b", "missing")}, **more)


def test_cells_have_rows_and_missing_cells_have_none_and_simultaneous_ones_share_the_level():
    rows = by_place(at_most=3.0).judge(RESULT)
    assert [(row["id"], row["cell"], row["verdict"]) for row in rows] == [
        ("id[a]", "a", "holds"),
        ("id[b]", "b", "fails"),
    ]
    rows = by_place(simultaneous=True).judge(RESULT)
    assert (rows[0]["low"], rows[0]["high"]) == mean_interval(X, 1 - 0.05 / 3)
    assert rows[0]["criterion"].endswith("at every place")


def test_statistics_and_an_unknown_interval_that_decides_nothing():
    (median,) = claim(statistic="median").judge(RESULT)
    assert median["value"] == np.median(X)
    (ratio,) = claim(statistic="ratio").judge(RESULT)
    assert ratio["value"] == pytest.approx(np.exp(np.log(X).mean()))
    (value,) = claim(sample=lambda result: 2.0, statistic="value", at_least=2.0).judge(RESULT)
    assert (value["low"], value["high"], value["verdict"]) == (2.0, 2.0, "holds")
    (row,) = claim(sample=lambda result: X[:1], at_least=0.0).judge(RESULT)
    assert (row["low"], row["high"], row["verdict"]) == (None, None, "undecided")


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (lambda result: result.x.sel(place="bad").values, "id: 9 of 9 samples are not finite"),
        (lambda result: [], "id: samples of shape"),
        (lambda result: result.y.values, "id: the result lacks"),
        (lambda result: result.x.sel(place="c").values, "id: the result lacks"),
        (lambda result: [1.0, -1.0], "1 of 2 ratios are not positive"),
    ],
)
def test_samples_that_cannot_be_evaluated_are_named(sample, message):
    with pytest.raises(ClaimError, match=message):
        claim(sample=sample, statistic="ratio").judge(RESULT)


def test_wrong_fields_are_refused():
    for field, fields in (("statistic", {"statistic": "worst"}), ("at_least", {"at_least": 2.0})):
        with pytest.raises(ValueError, match=field):
            claim(**{"at_most": 1.0} | fields)


def test_the_statement_of_all_cells_names_the_axes():
    fields = {"over": {"place": ("a",), "length": (1.0,)}, "sample": None}
    each = Claim("id", "derived here", "At {place}, {length:.1f}", "x", **fields)
    assert each.family == "At *place*, *length*"
