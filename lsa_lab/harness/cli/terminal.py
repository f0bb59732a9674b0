"""Text for a person: a terminal's width and weight, plain words in a pipe or a log."""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

WIDTH = 100  # columns where there is no terminal, and the most that prose takes


def width(most: int = WIDTH) -> int:
    """The columns of the terminal, between 60 and ``most``."""
    if not sys.stdout.isatty():
        return WIDTH
    return max(60, min(shutil.get_terminal_size().columns, most))


def bold(text: str) -> str:
    """Bold on a terminal, unless NO_COLOR says that nothing but text is wanted."""
    return f"\033[1m{text}\033[0m" if _has_looks() else text


def faint(text: str) -> str:
    """The same for what is read last."""
    return f"\033[2m{text}\033[0m" if _has_looks() else text


def columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The lines of each row, cells flush left; the last cell is wrapped under itself."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) + 2 for i in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        head = "".join(f"{cell:{size}}" for cell, size in zip(row, widths, strict=False))
        room = max(width() - len(head), 20)
        parts = textwrap.wrap(row[-1], room) or [""]
        rest = [" " * len(head) + part for part in parts[1:]]
        lines.append([(head + parts[0]).rstrip(), *rest])
    return lines


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """All lines of the rows."""
    return [line for row in columns(rows) for line in row]


def _has_looks() -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain
