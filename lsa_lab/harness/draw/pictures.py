"""A figure as files: the same data give the same bytes, whatever the kind."""

import io
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsa_lab.harness.draw import style
from lsa_lab.store.results import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What a file says of its date is left out.
KINDS = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}
_LETTERS, _LINE = 18, 0.14  # letters to an inch, and inches to a line, at 7 points


def of_door(door: Any, dataset: Any) -> Iterator[tuple[str, "Figure"]]:
    """(file name, picture) of what a figure's door draws: "figure", then "appendix", "appendix_2"
    and so on, for its ``appendix`` gives a picture or several."""
    yield "figure", door.plot(dataset)
    if hasattr(door, "appendix"):
        more = door.appendix(dataset)
        for i, picture in enumerate(more if isinstance(more, tuple | list) else (more,), 1):
            yield "appendix" if i == 1 else f"appendix_{i}", picture


def with_caption(picture: "Figure", text: str) -> "Figure":
    """The picture with its caption below it, for a slide; elsewhere the caption is text beside."""
    width, height = picture.get_size_inches()
    lines = textwrap.wrap(text, int(width * _LETTERS))
    room = (len(lines) + 1) * _LINE
    picture.set_size_inches(width, height + room)
    share = room / (height + room)
    picture.set_layout_engine("constrained", rect=(0, share, 1, 1 - share))
    picture.text(0.01, share - _LINE / 2 / (height + room), "\n".join(lines), va="top", fontsize=7)
    return picture


def save(picture: "Figure", folder: Path, name: str = "figure") -> None:
    """NAME.pdf and NAME.png."""
    for kind in ("pdf", "png"):
        write(folder / f"{name}.{kind}", content(picture, kind))


def content(picture: "Figure", kind: str) -> bytes:
    """The file of a kind, one of ``KINDS``, without a date: the same data give the same bytes."""
    file = io.BytesIO()
    with style.context():
        _settle(picture)
        picture.savefig(file, format=kind, metadata=KINDS[kind])
    return file.getvalue()


def _settle(picture: "Figure") -> None:
    """Lay the picture out once for all kinds of file, with positions rounded: the layout's solver
    varies in its last bits, which a coordinate on the edge of a rounding would show."""
    from matplotlib.transforms import Bbox

    if (engine := picture.get_layout_engine()) is None:
        return
    engine.execute(picture)
    picture.set_layout_engine(None)  # any engine, even "none", has the picture drawn twice a file
    for ax in picture.axes:
        ax.set_position(Bbox(ax.get_position(original=True).get_points().round(4)))
