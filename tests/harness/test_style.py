"""What a figure shows is counted, and the same whatever the machine."""

from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

from lsa_lab.harness.draw import footer, methods, style
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


def test_a_caption_ends_in_the_runs_and_what_was_left_out():
    picture, (ax, _) = style.figure(5.5, 2, (1, 2))
    config = SimpleNamespace(runs=9, d=5, n=[10, 20], seed=3)
    assert footer.with_footer("It is.\n a: d = 5.", config, [picture]) == "It is. a: d = 5. 9 runs."
    style.band(ax, [1, 2], np.array([[np.nan, 1.0], [2.0, np.inf]]))
    told = footer.with_footer("It is.", config, [picture])
    assert told == "It is. 9 runs, d = 5, 2 numbers left out as not finite."
    assert footer.with_footer("It is.", SimpleNamespace(), []) == "It is."


def test_rows_of_means_are_points_on_their_intervals():
    runs = np.array([[1.0, 5.0], [2.0, 7.0], [3.0, 6.0]])
    picture = style.panels(runs, 2, lambda ax, runs: style.mean_rows(ax, [0, 1], runs, color="k"))
    *bars, points = picture.axes[0].lines
    np.testing.assert_allclose(points.get_xdata(), [2, 6])
    for bar, column in zip(bars, runs.T, strict=True):
        np.testing.assert_allclose(bar.get_xdata(), mean_interval(column))


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


def test_ratios_are_drawn_with_the_interval_of_their_logarithms():
    ax = style.figure(3, 2)[1][0]
    samples = np.exp(np.random.default_rng(0).normal(size=(9, 2)))
    points = style.ratio_points(ax, [1, 2], samples)
    (bars,) = ax.containers
    ends = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    expected = [np.exp(mean_interval(np.log(column))) for column in samples.T]
    np.testing.assert_allclose(ends, expected)
    np.testing.assert_allclose(points[0], np.prod(samples, 0) ** (1 / 9))
    np.testing.assert_allclose(points[1:].T, expected)


def test_a_median_is_drawn_with_the_interval_that_judges_it():
    ax = style.figure(3, 2)[1][0]
    samples = np.random.default_rng(0).normal(size=(9, 2))
    style.median_points(ax, [1, 2], samples)
    (bars,) = ax.containers
    ends = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(ends, [median_interval(column) for column in samples.T])


def test_no_figure_is_made_with_pyplot():
    for folder in ("experiments", "lsa_lab"):
        for path in (ROOT / folder).rglob("*.py"):
            assert "pyplot" not in path.read_text("utf-8").replace("without pyplot", ""), path


def test_a_notebook_has_the_look_of_the_house_for_good():
    with matplotlib.rc_context({"font.size": 30}):
        style.notebook()
        assert style.figure(3, 2)[1][0].text(0, 0, "outside of any context").get_fontsize() == 8


def test_an_appendix_goes_on_in_the_letters():
    for _, axes in (style.figure(3.25, 2, (1, 2), "g"), style.stacked(3.25, (2,), ((1, 1),), "g")):
        assert [ax.get_title("left") for ax in axes] == ["g", "h"]
    assert style.figure(3.25, 2, first="g")[1][0].get_title("left") == "g"
    assert style.figure(3.25, 2)[1][0].get_title("left") == ""


@pytest.mark.parametrize("group", [methods.MODELS, methods.SELECTION])
def test_no_two_methods_that_stand_side_by_side_look_the_same(group):
    looks = [tuple(look.values()) for look in group.values()]
    assert len(set(looks)) == len(looks)
