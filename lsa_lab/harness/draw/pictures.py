"""A figure as files: the same data give the same bytes, whatever the kind, and each file names the
data by their sha256.
"""

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.footer import panels_of
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.store.results import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

# What a file says of its date is left out; under the second name it says from which data it is.
KINDS = {
    "pdf": ("CreationDate", "Subject"),
    "svg": ("Date", "Source"),
    "png": ("Software", "Source"),
}
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


def keep_letters(picture: "Figure") -> None:
    """Take the sentence out of every panel's title; its letter is a title of its own."""
    for ax in picture.axes:
        ax.set_title("")


def save(picture: "Figure", folder: Path, name: str = "figure", data: str = "") -> None:
    """NAME.pdf and NAME.png, which name the sha256 of the data."""
    for kind in ("pdf", "png"):
        write(folder / f"{name}.{kind}", content(picture, kind, data=data))


def data_of(png: Path) -> str:
    """The sha256 of the data that a picture was drawn from; empty if it does not say."""
    match = re.search(rb"tEXtSource\0sha256 ([0-9a-f]{64})", png.read_bytes())
    return match[1].decode() if match else ""


def save_panel(
    pictures: "Sequence[Figure]", letter: str, folder: Path, data: str = ""
) -> list[Path]:
    """panel_LETTER.pdf, .svg and .png: one panel, cut out of the picture that has it."""
    panels = {name: ax for picture in pictures for name, ax in panels_of(picture).items()}
    if letter not in panels:
        raise RefusalError(f"no panel {letter!r}: the figure has {', '.join(panels)}")
    panel, paths = panels[letter], []
    picture = panel.get_figure(root=True)
    assert picture is not None
    with style.context():
        _settle(picture)
        for artist in (*picture.axes, *picture.legends):
            artist.set_visible(artist is panel)
        box = panel.get_tightbbox()
        assert box is not None
        inches = box.transformed(picture.dpi_scale_trans.inverted()).padded(0.02)
        for kind in KINDS:
            paths.append(folder / f"panel_{letter}.{kind}")
            write(paths[-1], content(picture, kind, inches, data))
    return paths


def content(picture: "Figure", kind: str, box: "Bbox | None" = None, data: str = "") -> bytes:
    """The file of a kind, one of ``KINDS``, without a date: the same data give the same bytes.
    ``box``, in inches, is cut out."""
    file, (date, source) = io.BytesIO(), KINDS[kind]
    metadata = {date: None} | ({source: f"sha256 {data}"} if data else {})
    with style.context():
        _settle(picture)
        picture.savefig(file, format=kind, metadata=metadata, bbox_inches=box)
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
