"""The pictures of an experiment, and the files of a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsa_lab.harness.draw import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(module: Any, dataset: Any) -> "dict[str, Figure]":
    """Return {file name: picture} of a module's ``plot`` and ``appendix``: "figure", then
    "appendix", "appendix_2" and so on."""
    with style.context():
        by_name = {"figure": module.plot(dataset)}
        more = module.appendix(dataset) if hasattr(module, "appendix") else ()
    for i, picture in enumerate(more if isinstance(more, tuple | list) else (more,), 1):
        by_name["appendix" if i == 1 else f"appendix_{i}"] = picture
    return by_name


def save(picture: "Figure", folder: Path, name: str = "figure") -> None:
    """Write NAME.pdf and NAME.png, without a date."""
    folder.mkdir(parents=True, exist_ok=True)
    with style.context():
        for kind, date in {"pdf": "CreationDate", "png": "Software"}.items():
            picture.savefig(folder / f"{name}.{kind}", metadata={date: None})
