"""Build the lessons of notebooks/: exercises without answers, and their solutions in another file.

    python tools/lessons.py             builds all into .cache/notebooks
    python tools/lessons.py NAME        builds one and opens it in Jupyter

A cell tagged "solution" is in NAME_solutions alone, with the exercise and the check around it.
"""

import sys
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "notebooks").glob("*.py"))
BUILT = ROOT / ".cache" / "notebooks"
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def has_tag(cell: nbformat.NotebookNode, tag: str) -> bool:
    """Return whether a cell carries the tag."""
    return tag in cell.metadata.get("tags", ())


def read(script: Path) -> tuple[nbformat.NotebookNode, nbformat.NotebookNode]:
    """Return the notebook with the exercises, and the one with their solutions."""
    lesson, solutions = jupytext.read(script), jupytext.read(script)
    for notebook in (lesson, solutions):
        notebook.metadata.kernelspec = _KERNEL
        notebook.metadata.language_info = {"name": "python", "pygments_lexer": "ipython3"}
    title = f"# Solutions of [{script.stem}]({script.stem}.ipynb)"
    answers = [nbformat.v4.new_markdown_cell(title)]
    for previous, cell in zip([None, *solutions.cells], solutions.cells, strict=False):
        if has_tag(cell, "exercise"):
            answers.append(previous)
        elif has_tag(cell, "check"):
            check = cell
        elif has_tag(cell, "solution"):
            answers += [cell, check]
    solutions.cells, solutions.metadata["orphan"] = answers, True  # in no table of contents
    link = f"Solutions: [{script.stem}_solutions]({script.stem}_solutions.ipynb)"
    lesson.cells = [cell for cell in lesson.cells if not has_tag(cell, "solution")]
    lesson.cells.append(nbformat.v4.new_markdown_cell(link))
    return lesson, solutions


def build(script: Path, folder: Path = BUILT) -> Path:
    """Write NAME.ipynb and NAME_solutions.ipynb, not executed, and return the first path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{script.stem}.ipynb"
    lesson, solutions = read(script)
    nbformat.write(lesson, path)
    nbformat.write(solutions, folder / f"{script.stem}_solutions.ipynb")
    return path


def open_lesson(name: str) -> None:
    """Build a lesson and open it in Jupyter, or say how to install Jupyter."""
    from importlib.util import find_spec

    names = [script.stem for script in SCRIPTS]
    if name not in names:
        raise SystemExit(f"NAME={name}: no lesson has this name; there are {', '.join(names)}")
    path = build(ROOT / "notebooks" / f"{name}.py")
    if find_spec("jupyterlab") is None:
        raise SystemExit(f"built {path}; to open it: .venv/bin/pip install jupyterlab")
    from jupyterlab.labapp import main

    sys.exit(main([str(path)]))


if __name__ == "__main__":
    if sys.argv[1:]:
        open_lesson(sys.argv[1])
    for script in SCRIPTS:
        build(script)
