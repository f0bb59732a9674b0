"""Words and marks beside data: labels at the ends of lines, points that leave the panel, and how a
verdict looks."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lsa_lab.harness.draw.methods import BLACK, COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS: dict[str, dict[str, Any]] = {  # no verdict is told by its colour alone
    "holds": {"color": COLOURS[0], "marker": "o", "ms": 4.5},
    "fails": {"color": COLOURS[1], "marker": "X", "ms": 6.5, "mec": "white"},
    "undecided": {"color": BLACK, "marker": "o", "ms": 4.5, "mfc": "white"},
    "estimated": {"color": BLACK, "marker": "|", "ms": 7},
}
_AIR = 4  # points between a mark and its number
_LINE = 9  # points from one name to the next
_LEAD = 6  # points from the right edge of a panel to the names of its lines


def direct_label(
    ax: "Axes", x: float, y: float, text: str, color: str, offset: tuple[float, float] = (4, 0)
) -> None:
    """The name of a line beside its point (x, y), in its colour; ``offset`` in points."""
    right, above = np.sign(offset).astype(int)
    ax.annotate(
        text,
        (x, y),
        offset,
        textcoords="offset points",
        color=color,
        fontsize=7,
        ha={1: "left", 0: "center", -1: "right"}[right],
        va={1: "bottom", 0: "center", -1: "top"}[above],
        annotation_clip=False,
    )


def off_scale(ax: "Axes", x: ArrayLike, y: ArrayLike, color: str, form: str = ".2g") -> int:
    """Marks at the edge, with their numbers, for points that lie beyond the limits of y.

    Set the limits first. An open triangle shows where the point is; what is not finite is a cross
    at the top. Returns how many there are, for a caption.
    """
    low, high = ax.get_ylim()
    x, y = np.atleast_1d(np.asarray(x, float)), np.atleast_1d(np.asarray(y, float))
    count = 0
    for place, value in zip(x, y, strict=True):
        if low <= value <= high:
            continue
        count += 1
        down = value < low
        marker = ("v" if down else "^") if np.isfinite(value) else "x"
        look: dict[str, Any] = {"color": color, "marker": marker, "mfc": "white"}
        ax.plot(place, low if down else high, ls="none", ms=5, clip_on=False, zorder=4, **look)
        ax.annotate(
            f"{value:{form}}".replace("-", "\u2212"),
            (place, low if down else high),
            (0, _AIR if down else -_AIR),
            textcoords="offset points",
            color=color,
            fontsize=7,
            ha="center",
            va="bottom" if down else "top",
            bbox={"facecolor": "white", "lw": 0, "pad": 0.5},  # over the interval that leads there
            zorder=4,
        )
    return count


def end_labels(ax: "Axes", heights: Mapping[str, float], colors: Sequence[str]) -> None:
    """The names of lines beside the right edge, at the heights {name: y} of their ends or, where
    these are close, one below the other; a thin line leads from each end to its name. Places are
    found while drawing, so that limits set and layouts made after the call count."""
    from matplotlib.transforms import Affine2D

    picture = ax.get_figure(root=True)
    assert picture is not None

    def beside(i: int, settle: Callable[[np.ndarray, float], np.ndarray]) -> Callable:
        def points_from(_: Any) -> Affine2D:
            inch = picture.dpi  # of the file that is written
            edge, (low, high) = ax.get_xlim()[1], ax.bbox.intervaly
            ends = ax.transData.transform([(edge, y) for y in heights.values()])[:, 1]
            places = settle((np.clip(ends, low, high) - low) * 72 / inch, (high - low) * 72 / inch)
            return Affine2D().scale(inch / 72).translate(ax.bbox.x1, low + places[i] * inch / 72)

        return points_from

    for i, (name, color) in enumerate(zip(heights, colors, strict=False)):
        look: dict[str, Any] = {"textcoords": beside(i, _apart), "annotation_clip": False}
        look["xycoords"] = beside(i, lambda ends, _: ends)
        ax.annotate(name, (0, 0), (_LEAD + 2, 0), color=color, fontsize=7, va="center", **look)
        line = {"arrowstyle": "-", "color": color, "lw": 0.6, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (1, 0), (_LEAD, 0), arrowprops=line, **look)


def _apart(ends: np.ndarray, height: float) -> np.ndarray:
    """The places nearest to the ends, in points from the bottom, that lie a line of text apart in a
    panel of a height."""
    from scipy.optimize import isotonic_regression

    order, below = np.argsort(ends, kind="stable"), _LINE * np.arange(len(ends))
    free = isotonic_regression(ends[order] - below).x
    places = np.empty(len(ends))
    places[order] = np.clip(free, 0, max(0, height - below[-1])) + below
    return places
