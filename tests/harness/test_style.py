"""What a figure shows is counted, and the same whatever the machine."""

from pathlib import Path

import numpy as np
import pytest

from lsa_lab.claims import Statement
from lsa_lab.harness import judged_panel, style
from lsa_lab.statistics import mean_interval, median_interval

ROOT = Path(__file__).resolve().parents[2]


def test_a_band_counts_what_it_does_not_draw():
    ax = style.figure(3, 2)[1][0]
    samples = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.inf]])
    assert style.band(ax, [1, 2, 3], samples) == style.missing(samples) == 3
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [2, 5])
    with pytest.raises(ValueError, match=r"expected \[R, 3\], runs first"):
        style.band(ax, [1, 2, 3], samples.T)
    assert len(style.figure(3, 2, (2, 2))[1]) == 4


def test_a_mean_is_drawn_with_the_interval_that_judges_it():
    ax = style.figure(3, 2)[1][0]
    samples = np.random.default_rng(0).normal(size=(9, 2))
    style.mean_points(ax, [1, 2], samples)
    (bars,) = ax.containers
    ends = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(ends, [mean_interval(column) for column in samples.T])
    style.mean_band(ax, [1, 2], samples)
    (band,) = [each for each in ax.collections if hasattr(each, "get_paths")][-1:]
    heights = band.get_paths()[0].vertices[:, 1]
    assert np.isclose(heights.min(), min(mean_interval(column)[0] for column in samples.T))


def test_a_median_is_drawn_with_the_interval_that_judges_it():
    ax = style.figure(3, 2)[1][0]
    samples = np.random.default_rng(0).normal(size=(9, 2))
    style.median_points(ax, [1, 2], samples)
    (bars,) = ax.containers
    ends = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(ends, [median_interval(column) for column in samples.T])


def test_a_judged_row_shows_its_interval_its_verdict_and_where_it_would_hold():
    ax = style.figure(3, 2)[1][0]
    statements = [
        Statement("near", "ours", "it is near 0", "a number", margin=0.5),
        Statement("large", "ours", "it is large", "a number", at_least=2.0),
        Statement("small", "ours", "it is small", "a number", "median", at_most=1.0),
        Statement("other", "ours", "nobody knows", "a number", at_most=1.0),
    ]
    samples = {"near": [0.1, 0.2, 0.3], "large": [0.1, 0.2, 0.3], "small": [0.5, 0.6]}
    labels = {"small": "small one", "near": "near 0", "large": "large one", "other": "other one"}
    judged_panel.rows(ax, statements, {**samples, "other": None}, labels, (-1.0, 3.0))
    assert [label.get_text() for label in ax.get_yticklabels()] == [*labels.values()][:3]
    regions = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    np.testing.assert_allclose(regions, [(-1, 1), (-0.5, 0.5), (2, 3)])
    intervals = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2]
    np.testing.assert_allclose(intervals[0], [-1, 3])  # of two runs the median has no interval
    np.testing.assert_allclose(intervals[1], mean_interval(samples["near"]))
    points = {line.get_ydata()[0]: line for line in ax.lines if line.get_marker() in ("o", "X")}
    looks = [(points[row].get_marker(), points[row].get_markerfacecolor()) for row in range(3)]
    assert [marker for marker, _ in looks] == ["o", "o", "X"]
    assert [face == "white" for _, face in looks] == [True, False, False]
    assert len({points[row].get_color() for row in range(3)}) == 3


@pytest.mark.parametrize(("value", "edge", "arrow"), [(-70.0, -1.0, "<"), (0.0007, 0.0005, ">")])
def test_what_lies_beyond_a_judged_panel_is_written_at_its_edge(value, edge, arrow):
    ax = style.figure(3, 2)[1][0]
    statement = Statement("x", "ours", "it is small", "a number", "value", at_most=0.0)
    judged_panel.rows(ax, [statement], {"x": value}, {"x": "x"}, (-1.0, 0.0005))
    (mark,) = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert (mark.get_xdata()[0], mark.get_marker()) == (edge, arrow)
    assert [text.get_text() for text in ax.texts] == [f"{value:g}".replace("-", "\u2212")]


@pytest.mark.parametrize("beyond", [True, False])
def test_an_interval_that_leaves_a_judged_panel_ends_in_an_arrow(beyond):
    ax = style.figure(3, 2)[1][0]
    statement = Statement("x", "ours", "it is small", "a number", at_most=0.0)
    samples = np.array([0.1, 0.2, 0.3])
    end = mean_interval(samples)[1] + (-0.01 if beyond else 0.01)
    judged_panel.rows(ax, [statement], {"x": samples}, {"x": "x"}, (-1.0, end))
    assert [line.get_marker() for line in ax.lines].count(">") == beyond
    assert not ax.texts


def test_no_figure_is_made_with_pyplot():
    for folder in ("experiments", "lsa_lab"):
        for path in (ROOT / folder).rglob("*.py"):
            assert "pyplot" not in path.read_text("utf-8").replace("without pyplot", ""), path
