"""Names hold something, and docstrings are sentences or noun phrases."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# A name says what it holds: risks, errors, rows, statements, mask. These hold nothing.
HOLLOW = {"found", "made", "some", "one", "there", "drawn", "known", "shown", "told", "asked"}
HOLLOW |= {"settings"}  # parameters, config, grid or per_run, according to what it is
BARE = re.compile(r"(Of|By|At|To|From|With|On) ")

FOLDERS = ("experiments", "explorer", "lsa_lab", "notebooks", "tests/theorems")
FILES = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]


def hollow_names(source: str) -> list[str]:
    """Every name of HOLLOW that the source binds, with its line.

    Fields of a class are left out: committed results carry those of their Config.
    """
    rows, tree = [], ast.parse(source)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = [node.target for c in classes for node in c.body if isinstance(node, ast.AnnAssign)]
    for node in ast.walk(tree):
        if node in fields:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        else:
            continue
        if name in HOLLOW:
            rows.append(f"line {node.lineno}: {name}")
    return rows


def bare_prepositions(source: str) -> list[str]:
    """The first line of every docstring, but for questions, that begins with a preposition."""
    kinds = ast.FunctionDef | ast.ClassDef | ast.Module
    documented = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    texts = [ast.get_docstring(node) or "" for node in documented]
    questions = [text for text in texts if text.endswith("?")]
    return [text.split("\n")[0] for text in texts if BARE.match(text) and text not in questions]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_hold_something(path):
    assert not hollow_names(path.read_text("utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_docstrings_begin_with_no_bare_preposition(path):
    assert not bare_prepositions(path.read_text("utf-8"))


def test_what_holds_nothing_is_found():
    source = 'def f(found):\n    """Of a thing."""\n    return [one for one in found]\n'
    assert hollow_names(source) == ["line 1: found", "line 3: one"]
    assert bare_prepositions(source) == ["Of a thing."]
    assert not hollow_names("risks = [risk for risk in risks]")
