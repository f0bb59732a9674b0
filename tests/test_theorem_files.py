"""Every file of tests/theorems is one theorem: what it says, that it holds, where it does not."""

import ast
from pathlib import Path

import pytest

THEOREMS = sorted((Path(__file__).parent / "theorems").glob("*.py"))
MOST_LINES = 110

files = pytest.mark.parametrize("path", THEOREMS, ids=lambda path: path.stem)


def names_of(path):
    tree = ast.parse(path.read_text())
    return [node.name for node in tree.body if getattr(node, "name", "").startswith("test_")]


def test_there_are_theorems():
    assert THEOREMS
    assert all(path.name.startswith("test_") for path in THEOREMS)


@files
def test_its_docstring_names_the_theorem_and_its_two_sides(path):
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring
    assert "Sides:" in docstring, (
        "write, after the statement's name, Sides: the network's; the mathematics'."
    )


@files
def test_it_asserts_the_theorem_and_a_control_with_a_hypothesis_broken(path):
    controls = [name.startswith("test_control_") for name in names_of(path)]
    assert any(controls)
    assert not all(controls)


@files
def test_it_is_short(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES
