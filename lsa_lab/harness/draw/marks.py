"""Words and marks beside data: labels at the ends of lines, points that leave the panel, and how a
verdict looks."""

from collections.abc import Mapping, Sequence
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
_LINE = 11  # points from one name to the next, in a panel that its layout makes smaller


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
    these are close, one below the other. Set the limits and the scale first."""
    to_share = ax.transData + ax.transAxes.inverted()
    x = ax.get_xlim()[1]
    shares = np.array([to_share.transform((x, y))[1] for y in heights.values()])
    picture = ax.get_figure(root=True)
    assert picture is not None
    order = np.argsort(shares)
    step = _LINE * picture.dpi / 72 / ax.get_window_extent().height
    places = shares[order]
    for _ in range(100):  # neighbours push each other apart
        short = np.clip(step - np.diff(places), 0, None) / 2
        places = np.clip(places + np.append(0, short) - np.append(short, 0), 0, 1)
    for i, place in zip(order, places, strict=True):
        ax.annotate(
            list(heights)[i],
            (1, place),
            (5, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=colors[i],
            fontsize=7,
            va="center",
            annotation_clip=False,
        )
