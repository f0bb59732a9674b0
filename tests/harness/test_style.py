"""Figures: what is drawn, how it looks, and its files."""

from pathlib import Path

import numpy as np
import pytest

from legible import faults
from lsa_lab.harness.draw import marks, methods, style
from lsa_lab.judging.statistics import mean_interval, median_interval

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


@pytest.mark.parametrize(
    ("draw", "interval"),
    [
        (style.mean_points, mean_interval),
        (style.median_points, median_interval),
        (style.ratio_points, lambda column: np.exp(mean_interval(np.log(column)))),
    ],
)
def test_a_point_is_drawn_with_the_interval_that_judges_it(draw, interval):
    ax = style.figure(3, 2)[1][0]
    samples = np.exp(np.random.default_rng(0).normal(size=(9, 2)))
    points = draw(ax, [1, 2], samples)
    (bars,) = ax.containers
    ends = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    expected = [interval(column) for column in samples.T]
    np.testing.assert_allclose(ends, expected)
    if draw is style.ratio_points:
        np.testing.assert_allclose(points[0], np.prod(samples, 0) ** (1 / 9))
        np.testing.assert_allclose(points[1:].T, expected)


def test_no_figure_is_made_with_pyplot():
    for folder in ("experiments", "lsa_lab"):
        for path in (ROOT / folder).rglob("*.py"):
            assert "pyplot" not in path.read_text("utf-8").replace("without pyplot", ""), path


@pytest.mark.parametrize("group", [methods.MODELS, methods.SELECTION])
def test_no_two_methods_that_stand_side_by_side_look_the_same(group):
    looks = [tuple(look.values()) for look in group.values()]
    assert len(set(looks)) == len(looks)


def faults_of(change, width=3.25, panels=(1, 1)):
    with style.context():
        picture, axes = style.figure(width, 2.5, panels)
        axes[0].plot([0, 1], [0, 1], label="a line")
        change(axes[0])
        return " ".join(faults(picture))


def test_names_of_lines_stay_at_their_ends_when_the_limits_change_afterwards():
    """Three names around the ends that they share, and one alone at its own."""
    with style.context():
        picture, (ax,) = style.figure(3.25, 2.5)
        marks.end_labels(ax, {"b": 1.0, "a": 1.01, "c": 0.99, "alone": 3.0}, style.COLOURS)
        ax.set(xlim=(0, 1), ylim=(0, 4))
        assert list(faults(picture)) == []
        boxes = {text.get_text(): text.get_window_extent() for text in ax.texts if text.get_text()}
    heights = {name: (box.y0 + box.y1) / 2 for name, box in boxes.items()}
    _, shared = ax.transData.transform((1, 1))
    _, apart = ax.transData.transform((1, 3))
    assert heights["a"] > heights["b"] > heights["c"]
    assert heights["b"] == pytest.approx(shared, abs=1)
    assert heights["alone"] == pytest.approx(apart, abs=1)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda ax: ax.set_title("a title", fontsize=6), "'a title' has 6 points"),
        (lambda ax: ax.figure.text(0.9, 0.01, "leaves the canvas"), "is cut at the edge"),
        (lambda ax: [ax.text(0.2, y, "text") for y in (0.8, 0.82)], "lie over each other"),
        (lambda ax: ax.legend(loc="center"), "the legend of '' covers data"),
    ],
)
def test_each_fault_is_named(change, fault):
    assert fault in faults_of(change)
