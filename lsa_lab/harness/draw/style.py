"""The look of every figure: a line is theory, points with a bar are runs.

Figures are made without pyplot: no window, no global state, and the same bytes every time.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lsa_lab.harness.draw import panels as labels
from lsa_lab.harness.draw.methods import BLACK, COLOURS
from lsa_lab.harness.draw.methods import METHOD as METHOD
from lsa_lab.judging.statistics import mean_interval, median_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P")

# The middle 80 % of the runs: a statement about runs, not about the error of their median.
QUANTILES = (0.1, 0.9)

_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": "cycler('color', [" + ", ".join(f"'{c}'" for c in COLOURS) + "])",
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # TrueType: text in the PDF stays text
    "svg.hashsalt": "lsa-lab",
}
_SCREEN = 120  # dots an inch, of two pixels each: type of 8 points is as large as a notebook's text


@contextlib.contextmanager
def context() -> Iterator[None]:
    """Draw and save inside: the settings above over Matplotlib's own, whatever the user's are."""
    import matplotlib.style

    with matplotlib.style.context(["default", _SETTINGS]):
        yield


def notebook() -> None:
    """The look for a whole process, sharp enough for a screen; in a notebook, a cell that ends in a
    figure shows it. Call it once, at the top."""
    import matplotlib.style

    matplotlib.style.use(["default", _SETTINGS])
    with contextlib.suppress(ImportError):  # IPython: whoever has a notebook has it
        from IPython.core.getipython import get_ipython
        from IPython.core.pylabtools import select_figure_formats

        if (shell := get_ipython()) is not None:
            select_figure_formats(shell, "retina", dpi=2 * _SCREEN)


def missing(samples: ArrayLike) -> int:
    """Return how many of the numbers are not finite, and so not drawn."""
    return int(np.sum(~np.isfinite(np.asarray(samples, float))))


def figure(
    width: float, height: float, panels: tuple[int, int] = (1, 1), first: str = "a"
) -> "tuple[Figure, list[Axes]]":
    """An empty figure, in inches, of rows x columns axes, listed row by row and lettered; an
    appendix goes on in the letters, from ``first``."""
    from matplotlib.figure import Figure

    with context():
        picture = Figure(figsize=(width, height), layout="constrained")
        axes = list(picture.subplots(*panels, squeeze=False).flat)
        _letter(axes, first)
    return picture, axes


def panels(dataset: Any, height: float, *draws: "Callable[[Axes, Any], Any]") -> "Figure":
    """A message figure, as wide as a page: a panel beside the other, drawn by each of
    ``draws(ax, dataset)``."""
    picture, axes = figure(6.75, height, (1, len(draws)))
    for ax, draw in zip(axes, draws, strict=True):
        draw(ax, dataset)
    return picture


def stacked(
    width: float,
    heights: Sequence[float],
    columns: Sequence[Sequence[float]],
    first: str = "a",
) -> "tuple[Figure, list[Axes]]":
    """Rows of panels, one below the other, each with margins of its own: long names of rows in one
    take no room from another. ``heights`` in inches; ``columns`` are the shares of each row's
    width, ((1, 1, 1), (2, 1)) for three panels above two."""
    from matplotlib.figure import Figure

    with context():
        picture = Figure(figsize=(width, sum(heights)), layout="constrained")
        rows = picture.add_gridspec(len(heights), 1, height_ratios=heights)
        cells = [
            rows[row].subgridspec(1, len(shares), width_ratios=shares)
            for row, shares in zip(range(len(heights)), columns, strict=True)
        ]
        axes = [picture.add_subplot(row[i]) for row in cells for i in range(row.ncols)]
        _letter(axes, first)
    return picture, axes


def _letter(axes: "list[Axes]", first: str) -> None:
    """Panels have letters where there are several, and a role: from "a" on they are the message."""
    for ax in axes:
        ax.set_label(labels.MESSAGE if first == "a" else labels.APPENDIX)
    if len(axes) > 1 or first != "a":
        for ax, letter in zip(axes, ascii_lowercase[ascii_lowercase.index(first) :], strict=False):
            ax.set_title(letter, loc="left", fontweight="bold")


def line(
    ax: "Axes",
    x: ArrayLike,
    y: ArrayLike,
    label: str | None = None,
    color: str = BLACK,
    style: str = "-",
) -> None:
    """A closed form: a line, cut where the value is not finite."""
    y = np.ma.masked_invalid(np.asarray(y, float))
    ax.plot(np.asarray(x), y, style, color=color, label=label)


def band(
    ax: "Axes",
    x: ArrayLike,
    samples: ArrayLike,
    label: str | None = None,
    color: str = COLOURS[0],
    marker: str | None = "o",
    style: str = "-",
) -> int:
    """Runs ``samples`` [R, len(x)]: their median, and the interval of the middle 80 % of them.

    Points with bars or, without a marker, a line in a shaded band. Returns how many of the numbers
    are not finite: these are left out, as is an x at which nothing remains.
    """
    x, samples = np.asarray(x), np.asarray(samples, float)
    if samples.ndim != 2 or samples.shape[1] != len(x):
        raise ValueError(f"samples of shape {samples.shape}: expected [R, {len(x)}], runs first")
    columns = [column[np.isfinite(column)] for column in samples.T]
    kept = [i for i, column in enumerate(columns) if len(column)]
    x, middle = x[kept], np.array([np.median(columns[i]) for i in kept])
    low, high = np.array([np.quantile(columns[i], QUANTILES) for i in kept]).reshape(-1, 2).T
    if marker is None:
        ax.plot(x, middle, style, color=color, label=label)
        ax.fill_between(x, low, high, color=color, alpha=0.25, linewidth=0)
    else:
        bars = np.stack([middle - low, high - middle])
        ax.errorbar(
            x, middle, bars, fmt=marker, color=color, label=label, capsize=2, elinewidth=0.8
        )
    return missing(samples)


def mean_band(
    ax: "Axes",
    x: ArrayLike,
    samples: ArrayLike,
    label: str | None = None,
    color: str | None = None,
    marker: str | None = "o",
    style: str = "-",
) -> None:
    """Runs ``samples`` [R, len(x)]: their mean, and Student's interval of it as a band."""
    samples = np.asarray(samples)
    low, high = mean_ends(samples)
    ax.plot(x, samples.mean(0), style, marker=marker, color=color, label=label)
    if np.isfinite(low).all():  # not known from one run
        ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)


def mean_points(
    ax: "Axes", x: ArrayLike, samples: ArrayLike, label: str | None = None, **look: Any
) -> None:
    """Runs ``samples`` [R, len(x)]: their mean as points, with Student's interval as bars."""
    _points(ax, x, samples, np.asarray(samples).mean(0), mean_ends(samples), label, look)


def mean_rows(ax: "Axes", y: ArrayLike, samples: ArrayLike, **look: Any) -> None:
    """Runs ``samples`` [R, len(y)]: their mean as a point in each row, with Student's interval as a
    line along it."""
    ax.plot(mean_ends(samples), np.array([y, y]), color=look["color"], lw=0.8)
    ax.plot(np.asarray(samples).mean(0), y, **{"ls": "none"} | look)


def ratio_points(
    ax: "Axes", x: ArrayLike, samples: ArrayLike, label: str | None = None, **look: Any
) -> np.ndarray:
    """Runs ``samples`` [R, len(x)] > 0: their geometric mean as points, with Student's
    interval of the logarithms as bars. Returns the points and the ends of the bars [3, len(x)]."""
    logs = np.log(samples)
    middle = np.exp(logs.mean(0))
    bars = _points(ax, x, samples, middle, np.exp(mean_ends(logs)), label, look)
    return np.stack([middle, middle - bars[0], middle + bars[1]])


def median_points(
    ax: "Axes", x: ArrayLike, samples: ArrayLike, label: str | None = None, **look: Any
) -> None:
    """Runs ``samples`` [R, len(x)]: their median as points, and its interval as bars."""
    samples = np.asarray(samples)
    ends = np.transpose([median_interval(s) for s in samples.T])
    _points(ax, x, samples, np.median(samples, 0), ends, label, look)


def _points(
    ax: "Axes", x: ArrayLike, samples: Any, middle: Any, ends: Any, label: Any, look: dict[str, Any]
) -> np.ndarray:
    """Points with bars, which are returned; where an interval is not known there is none."""
    bars = np.abs(np.asarray(ends) - middle)
    bars = np.where(np.isfinite(bars), bars, 0.0)
    ax.errorbar(x, middle, bars, label=label, **look)
    return bars


def mean_ends(samples: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The ends [len(x)] of Student's interval for the mean of each column of [R, len(x)]."""
    low, high = np.transpose([mean_interval(column) for column in np.asarray(samples).T])
    return low, high


def log_axes(ax: "Axes", x: bool = False, y: bool = False, ticks: Sequence | None = None) -> None:
    """Logarithmic axes; ``ticks`` are the values of x to name, a grid of lengths for one."""
    from matplotlib.ticker import NullFormatter, NullLocator

    if x:
        ax.set_xscale("log")
        if ticks is not None:
            ax.set_xticks(list(ticks), [f"{tick:g}" for tick in ticks])
            ax.xaxis.set_minor_locator(NullLocator())
    if y:
        ax.set_yscale("log")
        ax.yaxis.set_minor_formatter(NullFormatter())
