"""The cells of the lessons by their tags, and exercises answered.

The cells tagged "setup" hold what an exercise needs: imports, short functions. "exercise" is a cell
to fill in, "check" judges the answer and binds the boolean ``solved``, "solution" is the answer. A
test of an exercise runs setup, answer and check in its own process.
"""

import functools

import jupytext

from tools.lessons import ROOT, has_tag


@functools.cache
def tagged(name: str, tag: str) -> tuple[str, ...]:
    """Return the sources of all cells of a lesson with the tag."""
    cells = jupytext.read(ROOT / "notebooks" / f"{name}.py").cells
    return tuple(cell.source for cell in cells if has_tag(cell, tag))


@functools.cache
def _setup(name: str) -> dict:
    names: dict = {}
    for source in tagged(name, "setup"):
        exec(compile(source, f"{name}, setup", "exec"), names)
    return names


def solution(name: str, part: int = -1) -> str:
    """Return the solution of an exercise of a lesson, by default of the last one."""
    return tagged(name, "solution")[part]


def answered(name: str, answer: str | None = None, part: int = -1, **values) -> dict:
    """Return the names after setup, ``answer`` and check of an exercise, by default the last one.

    Without an answer the cell runs as it stands. ``values`` are names that cells without a tag
    would have bound, such as a trained model.
    """
    names = {**_setup(name), **values}
    exercise, check = tagged(name, "exercise")[part], tagged(name, "check")[part]
    for tag, source in (("answer", answer or exercise), ("check", check)):
        exec(compile(source, f"{name}, {tag}", "exec"), names)
    return names
