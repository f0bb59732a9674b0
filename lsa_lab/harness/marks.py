"""Words and marks beside data: labels at the ends of lines, and points that leave the panel."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AIR = 4  # points between a mark and its number


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
        )
    return count
