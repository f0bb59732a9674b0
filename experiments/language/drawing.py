"""Rows of means over collections of texts, as figures of the theme show them."""

import numpy as np

from lsa_lab.lab import mean_interval, plotting


def draw_rows(ax, places, samples, label=None, color=plotting.BLUE):  # rows of samples [R]
    """Draw a mean with its 95 % interval in each row, and a stroke for each collection.

    The axis shows all collections; an interval of few of them may end outside.
    """
    for place, row in zip(places, samples, strict=True):
        row, (low, high) = np.asarray(row), mean_interval(row)
        ax.plot(row, np.full(len(row), place), "|", color="grey", ms=6)
        if np.isfinite([low, high]).all():
            ax.plot([low, high], [place, place], color=color, lw=1)
    ax.plot([np.mean(row) for row in samples], places, "o", color=color, label=label)
    strokes = [line.get_xdata() for line in ax.get_lines() if line.get_marker() == "|"]
    values = np.concatenate([[0.0], *strokes])
    room = 0.08 * np.ptp(values)
    ax.set_xlim(values.min() - room, values.max() + room)
    ax.axvline(0, color="grey", lw=0.8, zorder=0)


def name_rows(ax, names):
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
