"""Points in named rows with bars along them: what the figures on selection compare."""

import numpy as np

from lsa_lab.harness.draw.style import QUANTILES, mean_ends

_AIR = 5  # points between the edge and a number beside it


def span(values) -> str:
    """The least and the largest, in words."""
    low, high = float(values.min()), float(values.max())
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"


def means(ax, y, samples, span, **look):  # samples [R, len(y)]
    """The mean of the runs in each row and Student's interval."""
    points(ax, y, samples.mean(0), np.array(mean_ends(samples)), span, **look)


def medians(ax, y, samples, span, **look):  # samples [R, len(y)]
    """The median of the runs in each row and the middle 80 % of them."""
    points(ax, y, np.median(samples, 0), np.quantile(samples, QUANTILES, axis=0), span, **look)


def upright(ax, x, samples, least=0.0, **look):  # samples [R, len(x)]
    """The median of the runs at each x and the middle 80 % of them, not lower than ``least``."""
    low, high = np.quantile(samples, QUANTILES, axis=0)
    low, middle, high = np.maximum([low, np.median(samples, 0), high], least)
    bars = [middle - low, high - middle]
    ax.errorbar(x, middle, bars, **{"ls": "none", "elinewidth": 0.8} | look)


def points(ax, y, middle, ends, span, **look):
    """Points with bars on an axis from ``span[0]`` to ``span[1]``, one at each y.

    A bar that leaves ends in an arrow; a point beyond is an open triangle at the edge with its
    number, zero as well; several rows beyond one side with one number have it once.
    """
    y, inside = np.asarray(y, float), (middle >= span[0]) & (middle <= span[1])
    bars = np.abs(np.where(np.isfinite(ends), np.clip(ends, *span), middle) - middle)
    kept = {"xerr": bars[:, inside], "ls": "none", "elinewidth": 0.8}
    ax.errorbar(middle[inside], y[inside], **kept, **look)
    for edge, arrow, leaves in (
        (span[0], "<", ends[0] < span[0]),
        (span[1], ">", ends[1] > span[1]),
    ):
        for row in y[inside & leaves]:
            ax.plot(edge, row, arrow, color=look["color"], ms=3, clip_on=False)
    numbers = {}
    for row, value in zip(y[~inside], middle[~inside], strict=True):
        edge, arrow = (span[0], "<") if value < span[0] else (span[1], ">")
        beyond = look | {"marker": arrow, "mfc": "white", "clip_on": False, "label": None}
        ax.plot(edge, row, ls="none", ms=4, **beyond)
        numbers.setdefault((edge, f"{value:.2g}"), []).append(row)
    for (edge, number), rows in numbers.items():
        right = edge == span[1]
        ax.annotate(
            number,
            (edge, np.mean(rows)),
            (-_AIR if right else _AIR, 0),
            textcoords="offset points",
            color=look["color"],
            fontsize=7,
            ha="right" if right else "left",
            va="center",
        )
