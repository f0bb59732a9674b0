"""Whether a figure can be read on a page: sizes of type, texts that overlap, legends over data."""

import itertools

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.path import Path as Outline
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from lsa_lab.harness.draw.panels import panels_of

LEAST_TYPE = 7.0  # points, at the width at which the figure is printed
WIDTHS = (3.25, 5.5, 6.75)  # inches of a text block
MOST_PANELS = 6
AIR = 0.75  # points by which two boxes may overlap: they hold some air


def faults(figure):
    """One sentence for each thing that is not legible; none for a figure that is."""
    FigureCanvasAgg(figure).draw()
    if not np.isclose(WIDTHS, figure.get_figwidth(), atol=0.01).any():
        yield f"it is {figure.get_figwidth():g} inches wide: choose one of {WIDTHS}"
    if (count := len(panels_of(figure))) > MOST_PANELS:
        yield f"it has {count} panels: {MOST_PANELS} at most, the others in an appendix figure"
    outlines = [(repr(text.get_text()), text, outline(text)) for text in texts(figure)]
    for name, text, corners in outlines:
        if text.get_fontsize() < LEAST_TYPE:
            yield f"{name} has {text.get_fontsize():g} points: {LEAST_TYPE:g} at least"
        if corners.vertices.min() < -0.5 or (corners.vertices > figure.bbox.max + 0.5).any():
            yield f"{name} is cut at the edge of the canvas"
    for (name, one, first), (other, two, second) in itertools.combinations(outlines, 2):
        near = one.get_window_extent().overlaps(two.get_window_extent())
        if near and first.intersects_path(second, filled=True):
            yield f"{name} and {other} lie over each other"
    for ax in figure.axes:
        legend = ax.get_legend()
        box = legend and Bbox.intersection(legend.get_window_extent(), ax.bbox)
        artists = (*ax.lines, *ax.collections, *ax.patches)
        if box and any(lies_in(artist, box) for artist in artists if artist.get_visible()):
            yield f"the legend of {ax.get_title('left') or ax.get_title()!r} covers data"


def lies_in(artist, box):
    """Whether a line, points, the edge of a band or a bar, or the end of an interval are in it."""
    if hasattr(artist, "get_offsets") and np.any(artist.get_offsets()):
        points = artist.get_offset_transform().transform(artist.get_offsets())
        return box.count_contains(points) > 0
    paths = artist.get_paths() if hasattr(artist, "get_paths") else [artist.get_path()]
    paths = [artist.get_transform().transform_path(path) for path in paths]
    if isinstance(artist, LineCollection) or artist.get_linestyle() == "None":  # markers alone
        return any(box.count_contains(path.vertices) > 0 for path in paths)
    return any(path.intersects_bbox(box, filled=False) for path in paths if len(path.vertices))


def texts(figure):
    """Every visible text; of ticks those inside the view of their axis."""
    hidden = set()
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        span = 1e-9 * (abs(low) + abs(high))
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low - span <= tick.get_loc() <= high + span or not axis.get_visible():
                hidden |= {tick.label1, tick.label2}
    hidden |= {text for ax in figure.axes if not ax.get_visible() for text in ax.findobj(Text)}
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text not in hidden]
    return [text for text in shown if text.get_text().strip()]


def outline(text):
    """A text's own box, turned as it is, in pixels."""
    turned, middle = text.get_rotation(), text.get_window_extent().get_points().mean(0)
    text.set_rotation(0)
    size = text.get_window_extent().size - AIR * text.get_figure(root=True).dpi / 72
    text.set_rotation(turned)
    cos, sin = np.cos(np.deg2rad(turned)), np.sin(np.deg2rad(turned))
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * np.maximum(size, 0) / 2
    return Outline(middle + corners @ np.array([[cos, sin], [-sin, cos]]))
