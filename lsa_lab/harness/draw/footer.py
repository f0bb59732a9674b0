"""What the harness says at the end of a caption, so that no figure's door has to: the runs, d and
n, and how many numbers could not be drawn.
"""

from collections.abc import Iterable
from string import ascii_lowercase
from types import SimpleNamespace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What a panel is for, its label: the message of a figure's first picture, or what is kept for
# whoever wants more.
MESSAGE, APPENDIX = "message", "appendix"
_left_out: "WeakKeyDictionary[Axes, int]" = WeakKeyDictionary()


def missing(samples: ArrayLike) -> int:
    """How many of the numbers are not finite and so not drawn: for a caption."""
    return int(np.sum(~np.isfinite(np.asarray(samples, float))))


def leave_out(ax: "Axes", samples: ArrayLike) -> int:
    """The same, and the caption of the figure will say it."""
    count = missing(samples)
    _left_out[ax] = _left_out.get(ax, 0) + count
    return count


def with_footer(caption: str, config: SimpleNamespace, pictures: "Iterable[Figure]") -> str:
    """A caption and what it does not say itself."""
    caption = " ".join(caption.split())
    words = {"runs": "{} runs", "seeds": "{} seeds", "d": "d = {}", "n": "n = {}"}
    counts = {name: getattr(config, name, None) for name in words}
    facts = [
        words[name].format(count) for name, count in counts.items() if type(count) is int and count
    ]
    axes = [ax for picture in pictures for ax in panels_of(picture).values()]
    lost = sum(_left_out.get(ax, 0) for ax in axes)
    facts += [f"{lost} numbers left out as not finite"] if lost else []
    facts = [fact for fact in facts if fact not in caption]
    return f"{caption} {', '.join(facts)}." if facts else caption


def panels_of(picture: "Figure") -> "dict[str, Axes]":
    """The panels by letter: that of the title at the left, else that of the reading order."""
    axes = [ax for ax in picture.axes if ax.get_visible() and ax.get_label() != "<colorbar>"]
    titles = [ax.get_title(loc="left") for ax in axes]
    own = set(titles) <= set(ascii_lowercase) and len(set(titles)) == len(axes)
    return dict(zip(titles if own else ascii_lowercase, axes, strict=False))
