"""One panel of a figure as a file of its own: what a paper, a talk or a page takes.

Panels are lettered in reading order, as ``style.figure`` does. The panel keeps its type's size:
it is laid out anew at the width asked for, not scaled.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lsa_lab.harness.draw import legibility, style
from lsa_lab.harness.draw.pictures import KINDS, content
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.store.results import write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def save(pictures: "Sequence[Figure]", letter: str, width: float, folder: Path) -> list[Path]:
    """panel_LETTER.pdf, .svg and .png in the folder, ``width`` inches wide, of the picture that has
    the panel."""
    letters = [name for picture in pictures for name in panels_of(picture)]
    if letter not in letters:
        raise RefusalError(f"no panel {letter!r}: the figure has {', '.join(letters)}")
    picture, paths = next(each for each in pictures if letter in panels_of(each)), []
    with style.context():
        keep_only(picture, letter, width)
        for kind in KINDS:
            paths.append(folder / f"panel_{letter}.{kind}")
            write(paths[-1], content(picture, kind))
    return paths


def keep_only(picture: "Figure", letter: str, width: float) -> None:
    """All but one panel leaves the figure; a colorbar, a legend, names of rows and labels of axes
    that it shares with other panels come with it."""
    from matplotlib.gridspec import GridSpec

    panels = panels_of(picture)
    panel = panels[letter]
    picture.draw_without_rendering()  # lays it out
    height = _height(picture, panel, width)
    scale, entries = _scale(picture, panel), _legend_entries(panel, panels.values())
    _name_rows(panel, panels.values())
    _name_axes(panel, panels.values())
    for other in list(picture.axes):
        if other is not panel:
            other.remove()
    panel.set_title("", loc="left")
    panel.set_subplotspec(GridSpec(1, 1, figure=picture)[0])
    panel.set_in_layout(True)
    picture.set_layout_engine("constrained")
    if scale is not None:
        picture.colorbar(scale[0], ax=panel, label=scale[1])
    below = {text.get_text() for legend in picture.legends for text in legend.get_texts()}
    for legend in list(picture.legends):
        legend.remove()
    if entries is not None and below & set(entries[1]):
        picture.legend(*entries, loc="outside lower center", ncols=2)
    elif entries is not None:
        panel.legend(*entries)
    picture.set_size_inches(width, height)


def panels_of(picture: "Figure") -> "dict[str, Axes]":
    """The panels by letter: that of the title at the left, else that of the reading order."""
    axes = legibility.panels(picture)
    titles = [ax.get_title(loc="left") for ax in axes]
    letters = titles if set(titles) <= set(_LETTERS) and len(set(titles)) == len(axes) else _LETTERS
    return dict(zip(letters, axes, strict=False))


def _height(picture: "Figure", panel: "Axes", width: float) -> float:
    """Inches: in the panel's proportions, but rows of text keep the room that they have now."""
    box = panel.get_tightbbox()
    if box is None:
        return 0.75 * width
    scaled, now = width * box.height / box.width, box.height / picture.dpi
    return min(scaled, max(width, now)) if scaled > now else max(scaled, min(now, 1.5 * width))


def _scale(picture: "Figure", panel: "Axes") -> tuple[Any, str] | None:
    """What of the panel is coloured by a colorbar of the figure, and the colorbar's label."""
    for bar in picture.axes:
        if bar.get_label() != legibility.COLORBAR:
            continue
        for artist in (*panel.collections, *panel.images):
            if artist.get_array() is None:
                continue
            for ends, label in (
                (bar.get_ylim(), bar.get_ylabel()),
                (bar.get_xlim(), bar.get_xlabel()),
            ):
                if tuple(artist.get_clim()) == tuple(ends):
                    return artist, label
    return None


def _legend_entries(panel: "Axes", panels: "Iterable[Axes]") -> tuple[list, list[str]] | None:
    """For a panel without a legend: its own labels, or another's legend that is its key as well."""
    if panel.get_legend() is not None:
        return None
    own = panel.get_legend_handles_labels()
    if own[0]:
        return own
    looks = {_look(line) for line in panel.get_lines()}
    for other in panels:
        if other.get_legend() is not None:
            handles, labels = other.get_legend_handles_labels()
            if {_look(handle) for handle in handles} <= looks and handles:
                return handles, labels
    return None


def _name_rows(panel: "Axes", panels: "Iterable[Axes]") -> None:
    """The names of rows that stand beside another panel of the same rows alone."""

    def names(ax: "Axes") -> list[str]:
        return [label.get_text() for label in ax.get_yticklabels()]

    def rows(ax: "Axes") -> tuple:
        return (*ax.get_ylim(), *ax.get_yticks())

    for other in panels:
        if any(names(other)) and not any(names(panel)) and rows(other) == rows(panel):
            size = other.get_yticklabels()[0].get_fontsize()
            panel.set_yticks(other.get_yticks(), names(other), fontsize=size)


def _name_axes(panel: "Axes", panels: "Iterable[Axes]") -> None:
    """The label of an axis that stands beside another panel alone, of the same row for y and of the
    same column for x, with the same limits and ticks."""
    box = panel.get_position()
    x = (*panel.get_xlim(), *panel.get_xticks())
    y = (*panel.get_ylim(), *panel.get_yticks())
    for other in panels:
        place = other.get_position()
        if not panel.get_ylabel() and np.allclose(place.intervaly, box.intervaly):
            same = (*other.get_ylim(), *other.get_yticks()) == y
            panel.set_ylabel(other.get_ylabel() if same else "")
        if not panel.get_xlabel() and np.allclose(place.intervalx, box.intervalx):
            same = (*other.get_xlim(), *other.get_xticks()) == x
            panel.set_xlabel(other.get_xlabel() if same else "")


def _look(handle: Any) -> tuple:
    """What tells a line or points with bars from others."""
    line = handle[0] if isinstance(handle, tuple) else handle
    if not hasattr(line, "get_marker"):
        return (id(handle),)
    return line.get_color(), line.get_linestyle(), line.get_marker(), line.get_markerfacecolor()
