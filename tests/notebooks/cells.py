"""Notebooks as their cells: percent scripts built into .ipynb files, and exercises answered.

A notebook's cells carry tags: "setup" is what its exercise needs (imports, a few functions, nothing
that takes a second), "exercise" is a cell to fill in, "check" judges the answer and binds the
boolean ``solved``. A test of an exercise runs these three alone, in its own process.
"""

import functools
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "notebooks").glob("*.py"))
BUILT = ROOT / ".cache" / "notebooks"


def build(script: Path, folder: Path = BUILT) -> Path:
    """The script as folder/NAME.ipynb, its cells not yet executed."""
    notebook = jupytext.read(script)
    notebook.metadata.kernelspec = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{script.stem}.ipynb"
    nbformat.write(notebook, path)
    return path


@functools.cache
def tagged(name: str, tag: str) -> tuple[str, ...]:
    """The sources of all cells of notebook ``name`` that carry the tag."""
    cells = jupytext.read(ROOT / "notebooks" / f"{name}.py").cells
    return tuple(cell.source for cell in cells if tag in cell.metadata.get("tags", ()))


@functools.cache
def _setup(name: str) -> dict:
    names: dict = {}
    for source in tagged(name, "setup"):
        exec(compile(source, f"{name}, setup", "exec"), names)
    return names


def solution(name: str, part: int = -1) -> str:
    """The code of a folded solution of the notebook, by default of its last exercise."""
    cell = tagged(name, "solution")[part]
    return cell.partition("```python\n")[2].partition("\n```")[0]


def answered(name: str, answer: str | None = None, part: int = -1, **values) -> dict:
    """What the notebook's names hold after setup, ``answer`` (by default, the cell as it stands)
    and check, of its last exercise or another part. ``values`` are names that cells without a tag
    would have bound: a trained model.
    """
    names = {**_setup(name), **values}
    exercise, check = tagged(name, "exercise")[part], tagged(name, "check")[part]
    for tag, source in (("answer", answer or exercise), ("check", check)):
        exec(compile(source, f"{name}, {tag}", "exec"), names)
    return names
