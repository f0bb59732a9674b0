"""What a reader could not read in a figure: small type, texts over texts, data under a legend."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

LEAST_TYPE = 7.0  # points, at the width at which the figure is printed
WIDTHS = (3.25, 5.5, 6.75)  # inches of a text block
MOST_PANELS = 6
COLORBAR = "<colorbar>"  # what Matplotlib labels the axes of one
_TOUCH = 0.75  # points by which two boxes may overlap: they hold some air


def faults(figure: "Figure") -> list[str]:
    """One sentence for each thing that is not legible; none for a figure that is."""
    figure.canvas.draw()
    texts = [text for text in _texts(figure) if text.get_text().strip()]
    boxes = [text.get_window_extent() for text in texts]
    return [
        *_form(figure),
        *_small(texts),
        *_outside(figure, texts, boxes),
        *_overlaps(figure, texts, boxes),
        *_covered(figure),
    ]


def panels(figure: "Figure") -> "list[Axes]":
    """The axes that hold data: no colour bars, no second scales."""
    return [ax for ax in figure.axes if ax.get_visible() and ax.get_label() != COLORBAR]


def _form(figure: "Figure") -> Iterator[str]:
    width = figure.get_figwidth()
    if not any(abs(width - each) < 0.01 for each in WIDTHS):
        yield f"it is {width:g} inches wide: choose one of {', '.join(map(str, WIDTHS))}"
    count = len(panels(figure))
    if count > MOST_PANELS:
        yield f"it has {count} panels: {MOST_PANELS} at most, the others in an appendix figure"


def _texts(figure: "Figure") -> "Iterator[Text]":
    """Every visible text inside the view of its axis."""
    from matplotlib.axis import Axis
    from matplotlib.text import Text

    hidden: set[int] = set()
    for ax in figure.axes:
        if not ax.get_visible():
            hidden |= {id(text) for text in ax.findobj(Text)}
        for axis in (ax.xaxis, ax.yaxis):
            assert isinstance(axis, Axis)
            low, high = sorted(axis.get_view_interval())
            span = 1e-9 * (abs(low) + abs(high))
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low - span <= tick.get_loc() <= high + span or not axis.get_visible():
                    hidden |= {id(tick.label1), id(tick.label2)}
    for text in figure.findobj(Text):
        if text.get_visible() and id(text) not in hidden:
            yield text


def _small(texts: "list[Text]") -> Iterator[str]:
    for text in texts:
        size = float(text.get_fontsize())
        if size < LEAST_TYPE - 1e-6:
            yield f"{_quoted(text)} has {size:g} points: {LEAST_TYPE:g} at least"


def _outside(figure: "Figure", texts: "list[Text]", boxes: "list[Bbox]") -> Iterator[str]:
    whole = figure.bbox
    for text, box in zip(texts, boxes, strict=True):
        if (
            box.x0 < whole.x0 - 0.5
            or box.y0 < whole.y0 - 0.5
            or box.x1 > whole.x1 + 0.5
            or box.y1 > whole.y1 + 0.5
        ):
            yield f"{_quoted(text)} is cut at the edge of the canvas"


def _overlaps(figure: "Figure", texts: "list[Text]", boxes: "list[Bbox]") -> Iterator[str]:
    air = _TOUCH * figure.dpi / 72
    for (text, first), (other, second) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        down = min(first.y1, second.y1) - max(first.y0, second.y0)
        if min(across, down) > air and _meet(_corners(text, air), _corners(other, air)):
            yield f"{_quoted(text)} and {_quoted(other)} lie over each other"


def _corners(text: "Text", air: float) -> np.ndarray:  # [4, 2]
    """The corners of a text's own box, turned as it is, in pixels."""
    turned, box = text.get_rotation(), text.get_window_extent()
    middle = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2
    text.set_rotation(0)
    flat = text.get_window_extent()
    text.set_rotation(turned)
    half = np.maximum([flat.width - air, flat.height - air], 0) / 2
    cos, sin = np.cos(np.deg2rad(turned)), np.sin(np.deg2rad(turned))
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    return middle + (signs * half) @ np.array([[cos, sin], [-sin, cos]])


def _meet(box: np.ndarray, other: np.ndarray) -> bool:
    """Whether two rectangles share a point: no side of either separates them."""
    for corners in (box, other):
        for side in (corners[1] - corners[0], corners[3] - corners[0]):
            first, second = box @ side, other @ side
            if first.max() <= second.min() or second.max() <= first.min():
                return False
    return True


def _covered(figure: "Figure") -> Iterator[str]:
    for ax in figure.axes:
        legend = ax.get_legend()
        if legend is None or not ax.get_visible():
            continue
        box = legend.get_window_extent()
        for name, points in _data(ax):
            inside = (
                (points[:, 0] > box.x0)
                & (points[:, 0] < box.x1)
                & (points[:, 1] > box.y0)
                & (points[:, 1] < box.y1)
            )
            if inside.any():
                yield f"the legend of {ax.get_title('left') or ax.get_title()!r} covers {name}"


def _data(ax: "Axes") -> Iterator[tuple[str, np.ndarray]]:
    """The points of lines, also between their ends, of markers, bands and bars, in pixels."""
    view = ax.get_window_extent()
    for line in ax.lines:
        if line.get_visible() and np.size(line.get_path().vertices):
            vertices = _vertices(line)
            if line.get_linestyle() not in ("None", "", " "):
                vertices = _between(vertices)
            yield f"the line {line.get_label()!r}", _seen(vertices, view)
    for collection in ax.collections:
        offsets = np.array(collection.get_offsets(), dtype=float)
        if not collection.get_visible():
            continue
        if offsets.any():
            points = collection.get_offset_transform().transform(offsets)
            yield f"the points {collection.get_label()!r}", _seen(points, view)
            continue
        for path in collection.get_paths():
            vertices = collection.get_transform().transform(np.asarray(path.vertices, float))
            yield f"the band {collection.get_label()!r}", _seen(_between(vertices), view)
    for patch in ax.patches:
        if patch.get_visible():
            yield "a bar", _seen(_between(_vertices(patch)), view)


def _vertices(artist: Any) -> np.ndarray:  # [V, 2]
    """The path of a line or a patch, in pixels."""
    return np.asarray(artist.get_transform().transform_path(artist.get_path()).vertices, float)


def _between(vertices: np.ndarray, parts: int = 20) -> np.ndarray:
    """The vertices and points on the straight lines between neighbours."""
    if len(vertices) < 2:
        return vertices
    shares = np.linspace(0, 1, parts)[:, None, None]
    return (vertices[:-1] * (1 - shares) + vertices[1:] * shares).reshape(-1, 2)


def _seen(points: np.ndarray, view: "Bbox") -> np.ndarray:
    points = points[np.isfinite(points).all(1)]
    inside = (
        (points[:, 0] >= view.x0)
        & (points[:, 0] <= view.x1)
        & (points[:, 1] >= view.y0)
        & (points[:, 1] <= view.y1)
    )
    return points[inside]


def _quoted(text: "Text") -> str:
    return repr(" ".join(text.get_text().split())[:40])
