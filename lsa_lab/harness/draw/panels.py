"""The panels of a figure."""

from string import ascii_lowercase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The label of a panel: part of a figure's first picture, or of an appendix.
MESSAGE, APPENDIX = "message", "appendix"


def panels_of(picture: "Figure") -> "dict[str, Axes]":
    """The panels by letter: that of the title at the left, else that of the reading order."""
    axes = [ax for ax in picture.axes if ax.get_visible() and ax.get_label() != "<colorbar>"]
    titles = [ax.get_title(loc="left") for ax in axes]
    own = set(titles) <= set(ascii_lowercase) and len(set(titles)) == len(axes)
    return dict(zip(titles if own else ascii_lowercase, axes, strict=False))
