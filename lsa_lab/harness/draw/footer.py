"""What the harness says at the end of a caption, so that no figure's door has to: the key of the
judged panels, the runs, d and n, and how many numbers could not be drawn.
"""

from collections.abc import Iterable
from string import ascii_lowercase
from types import SimpleNamespace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from lsa_lab.judging.statistics import level

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEY = (
    f"what is judged, with {level()} intervals; grey: where a row would hold; blue dots hold, "
    "orange crosses fail, black rings are undecided; arrows and numbers: beyond the axis"
)
# What a panel is for, its label: the message of a figure's first picture, rows that are judged, or
# what is kept for whoever wants more.
MESSAGE, JUDGED, APPENDIX = "message", "judged", "appendix"
_left_out: "WeakKeyDictionary[Axes, int]" = WeakKeyDictionary()


def leave_out(ax: "Axes", samples: ArrayLike) -> int:
    """How many of the numbers are not finite and so are not drawn; the caption will say it."""
    count = int(np.sum(~np.isfinite(np.asarray(samples, float))))
    _left_out[ax] = _left_out.get(ax, 0) + count
    return count


def with_footer(caption: str, config: SimpleNamespace, pictures: "Iterable[Figure]") -> str:
    """A caption and what it does not say itself."""
    caption = " ".join(caption.split())
    panels = {name: ax for picture in pictures for name, ax in panels_of(picture).items()}
    letters = ", ".join(name for name, ax in panels.items() if ax.get_label() == JUDGED)
    counts = {name: _whole(config, name) for name in ("runs", "seeds", "d", "n")}
    facts = [f"{counts[name]} {name}" for name in ("runs", "seeds") if counts[name]]
    facts += [f"{name} = {counts[name]}" for name in ("d", "n") if counts[name]]
    lost = sum(_left_out.get(ax, 0) for ax in panels.values())
    facts += [f"{lost} numbers left out as not finite"] if lost else []
    parts = [f"{letters}: {KEY}" if len(panels) > 1 else f"W{KEY[1:]}"] if letters else []
    parts += [", ".join(facts)] if (facts := [f for f in facts if f not in caption]) else []
    return " ".join([caption, *(f"{part}." for part in parts)])


def panels_of(picture: "Figure") -> "dict[str, Axes]":
    """The panels by letter: that of the title at the left, else that of the reading order."""
    axes = [ax for ax in picture.axes if ax.get_visible() and ax.get_label() != "<colorbar>"]
    titles = [ax.get_title(loc="left") for ax in axes]
    own = set(titles) <= set(ascii_lowercase) and len(set(titles)) == len(axes)
    return dict(zip(titles if own else ascii_lowercase, axes, strict=False))


def _whole(config: SimpleNamespace, name: str) -> int | None:
    value = getattr(config, name, None)
    return value if type(value) is int else None
