"""A reader sees which rows hold, by how much, and what lies beyond the axis."""

from types import SimpleNamespace

import numpy as np
import pytest

from lsa_lab.harness.draw import footer, judged_panel, style
from lsa_lab.judging.claims import Statement
from lsa_lab.judging.statements import grid
from lsa_lab.judging.statistics import mean_interval


def test_a_row_shows_its_interval_its_verdict_and_where_it_would_hold():
    ax = style.figure(3, 2)[1][0]
    statements = [
        Statement("near", "ours", "it is near 0", "a number", margin=0.5, label="near 0"),
        Statement("large", "ours", "it is large", "a number", at_least=2.0, label="large one"),
        Statement("small", "ours", "it is small", "a number", "median", at_most=1.0, label="low"),
        Statement("other", "ours", "nobody knows", "a number", at_most=1.0, label="other one"),
    ]
    samples = {"near": [0.1, 0.2, 0.3], "large": [0.1, 0.2, 0.3], "small": [0.5, 0.6]}
    ids = ("small", "near", "large", "other")
    judged_panel.rows(ax, statements, {**samples, "other": None}, (-1.0, 3.0), ids)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["low", "near 0", "large one"]
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
def test_what_lies_beyond_the_axis_is_written_at_its_edge(value, edge, arrow):
    ax = style.figure(3, 2)[1][0]
    statement = Statement("x", "ours", "it is small", "a number", "value", at_most=0.0, label="x")
    judged_panel.rows(ax, [statement], {"x": value}, (-1.0, 0.0005))
    (mark,) = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert (mark.get_xdata()[0], mark.get_marker()) == (edge, arrow)
    assert [text.get_text() for text in ax.texts] == [f"{value:g}".replace("-", "\u2212")]


@pytest.mark.parametrize("beyond", [True, False])
def test_an_interval_that_leaves_the_axis_ends_in_an_arrow(beyond):
    ax = style.figure(3, 2)[1][0]
    statement = Statement("x", "ours", "it is small", "a number", at_most=0.0, label="x")
    samples = np.array([0.1, 0.2, 0.3])
    end = mean_interval(samples)[1] + (-0.01 if beyond else 0.01)
    judged_panel.rows(ax, [statement], {"x": samples}, (-1.0, end))
    assert [line.get_marker() for line in ax.lines].count(">") == beyond
    assert not ax.texts


def test_rows_are_by_default_the_cells_that_have_a_label_in_their_order():
    ax = style.figure(3, 2)[1][0]
    family = Statement(
        "small",
        "ours",
        "{part} is small",
        "a number",
        at_most=1.0,
        label="{part}",
        cells=grid("left right", part=("left one", "right one")),
    )
    silent = Statement("silent", "ours", "it is small", "a number", at_most=1.0)
    samples = {id: [0.1, 0.2, 0.3] for id in ("silent", "left", "right")}
    judged_panel.rows(ax, [silent, family], samples, (-1.0, 3.0))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["left one", "right one"]


def test_a_caption_ends_in_the_key_the_runs_and_what_was_left_out():
    picture, (left, right) = style.figure(5.5, 2, (1, 2))
    config = SimpleNamespace(runs=9, d=5, n=[10, 20], seed=3)
    assert footer.with_footer("It is.\n a: d = 5.", config, [picture]) == "It is. a: d = 5. 9 runs."
    judged_panel.rows(right, [], {}, (0.0, 1.0))
    style.band(left, [1, 2], np.array([[np.nan, 1.0], [2.0, np.inf]]))
    told = footer.with_footer("It is.", config, [picture])
    assert told == f"It is. b: {footer.KEY}. 9 runs, d = 5, 2 numbers left out as not finite."


def test_a_caption_without_letters_has_the_key_as_a_sentence():
    picture, (ax,) = style.figure(5.5, 2)
    judged_panel.rows(ax, [], {}, (0.0, 1.0))
    told = footer.with_footer("It is.", SimpleNamespace(), [picture])
    assert told == f"It is. What is judged{footer.KEY.removeprefix('what is judged')}."
