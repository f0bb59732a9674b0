"""What cannot be read is named: each fault by a figure that has it, and by no other."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from lsa_lab.harness.draw import legibility, marks, style


def faults_of(change, width=3.25, panels=(1, 1)):
    with style.context():
        picture, axes = style.figure(width, 2.5, panels)
        axes[0].plot([0, 1], [0, 1], label="a line")
        change(axes[0])
        FigureCanvasAgg(picture)
        return legibility.faults(picture)


def test_a_plain_figure_has_no_fault():
    assert faults_of(lambda ax: ax.set(xlabel="x", ylabel="y", title="a title")) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda ax: ax.set_title("a title", fontsize=6), "'a title' has 6 points"),
        (lambda ax: ax.figure.text(0.9, 0.01, "leaves the canvas"), "is cut at the edge"),
        (lambda ax: [ax.text(0.2, y, "text") for y in (0.8, 0.82)], "lie over each other"),
        (lambda ax: ax.legend(loc="center"), "covers the line 'a line'"),
        (
            lambda ax: (ax.scatter([0.1], [0.9], label="p"), ax.legend(loc="upper left")),
            "covers the points 'p'",
        ),
    ],
)
def test_each_fault_is_named(change, fault):
    (said,) = {text for text in faults_of(change) if fault in text}
    assert said


def test_turned_labels_are_judged_by_their_own_boxes():
    def turned(ax):
        ax.set_xticks(np.linspace(0, 1, 6), [f"a long label {i}" for i in range(6)])
        ax.tick_params("x", rotation=60)

    assert faults_of(turned) == []


def test_the_form_is_that_of_a_page():
    assert "choose one of 3.25, 5.5, 6.75" in faults_of(lambda ax: None, width=9)[0]
    assert "8 panels: 6 at most" in faults_of(lambda ax: None, 6.75, (2, 4))[0]


def test_points_beyond_the_axis_stand_at_its_edge_with_their_numbers():
    _, (ax,) = style.figure(3.25, 2.0)
    ax.set(xlim=(0, 4), ylim=(0, 1))
    assert marks.off_scale(ax, [1, 2, 3], [0.5, 40.0, np.nan], style.BLACK) == 2
    assert [text.get_text() for text in ax.texts] == ["40", "nan"]


def test_names_of_lines_that_end_close_together_stand_below_each_other():
    def ends(ax):
        ax.set(xlim=(0, 1), ylim=(0, 1))
        marks.end_labels(ax, {"last": 0.0, "next": 0.01, "third": 0.9}, style.COLOURS)

    assert faults_of(ends) == []

    def control(ax):
        for name, y in (("last", 0.0), ("next", 0.01)):
            marks.direct_label(ax, 1, y, name, style.BLACK)

    assert "lie over each other" in faults_of(control)[0]
