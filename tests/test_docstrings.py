"""The examples in the docstrings of the library run, and print what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = [path for path in (ROOT / "lsa_lab").rglob("*.py") if ">>> " in path.read_text("utf-8")]
MODULES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in FILES
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


def test_control_a_wrong_example_fails():
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner().run(wrong, out=lambda _: None).failed == 1
