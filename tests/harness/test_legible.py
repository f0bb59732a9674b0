"""Each thing that cannot be read on a page is named, and a legible figure has none."""

import numpy as np
import pytest

from legible import faults
from lsa_lab.harness.draw import marks, style


def faults_of(change, width=3.25, panels=(1, 1)):
    with style.context():
        picture, axes = style.figure(width, 2.5, panels)
        axes[0].plot([0, 1], [0, 1], label="a line")
        change(axes[0])
        return " ".join(faults(picture))


def turned(ax):
    ax.set_xticks(np.linspace(0, 1, 6), [f"a long label {i}" for i in range(6)])
    ax.tick_params("x", rotation=60)


def ends(ax):
    ax.set(xlim=(0, 1), ylim=(0, 1))
    marks.end_labels(ax, {"last": 0.0, "next": 0.01, "third": 0.9}, style.COLOURS)


@pytest.mark.parametrize("change", [lambda ax: ax.set(xlabel="x", title="a title"), turned, ends])
def test_a_figure_without_a_fault_has_none(change):
    assert faults_of(change) == ""


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


def test_the_form_is_that_of_a_page():
    assert "it is 9 inches wide: choose one of (3.25, 5.5, 6.75)" in faults_of(
        lambda ax: None, width=9
    )
    assert "8 panels: 6 at most" in faults_of(lambda ax: None, 6.75, (2, 4))
