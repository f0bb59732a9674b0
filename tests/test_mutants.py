"""A mutant is met where its module is imported; the hundred changes by hand apply to the library as
it is, and the tests that they name exist."""

import functools
import importlib
import re
import sys
from collections import Counter

import pytest

from tools.mutants import by_hand, trials

CHANGES = by_hand.changes()
ROOMS = ("theory", "models", "analyses", "selection", "estimators", "tasks")


@functools.cache
def names_of(file):
    return set(re.findall(r"^def (test_\w+)\(", (by_hand.ROOT / "tests" / file).read_text(), re.M))


def missing(tests):
    """Those that name no test of a file."""
    parts = [test.partition("::") for test in tests]
    return [name for file, _, name in parts if name.partition("[")[0] not in names_of(file)]


def test_different_changes_reach_every_room_that_computes():
    assert len({(change.file, change.old, change.new) for change in CHANGES}) == 110
    assert all(change.wrong.endswith(".") for change in CHANGES)
    rooms = Counter(change.file.partition("/")[0] for change in CHANGES)
    assert all(rooms[room] >= 8 for room in ROOMS)


def test_each_change_is_of_a_passage_that_stands_once_and_leaves_python():
    for change in CHANGES:
        assert change.source() != (by_hand.ROOT / change.module).read_text()


def test_each_change_names_tests_that_exist():
    for change in CHANGES:
        assert change.tests
        assert not missing(change.tests), change.wrong


def test_control_what_does_not_apply_is_refused_and_an_unknown_test_is_missed():
    with pytest.raises(ValueError, match="0 times"):
        by_hand.Change("theory/risk.py", "", "no such passage", "", ()).source()
    with pytest.raises(ValueError, match="times"):
        by_hand.Change("theory/risk.py", "", "return ", "yield ", ()).source()
    assert missing(["theory/test_risk.py::test_nothing"]) == ["test_nothing"]


def test_a_mutant_is_imported_in_place_of_its_file_which_stays_as_it_is(tmp_path, monkeypatch):
    path, source = tmp_path / "toy_to_mutate" / "doubles.py", "def double(x):\n    return 2 * x\n"
    path.parent.mkdir()
    for name in ("__init__.py", "halves.py", "doubles.py"):
        path.with_name(name).write_text(source)
    mutant = trials.Mutant(path, source.replace("2", "3"), tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [mutant, *sys.meta_path])
    modules = [importlib.import_module(f"toy_to_mutate.{name}") for name in ("doubles", "halves")]
    assert [module.double(1) for module in modules] == [3, 2]
    assert path.read_text() == source


def test_a_text_says_a_public_name_as_a_word():
    assert trials.says("ols", "risk.ols(5, 3, 1.0)")
    assert not trials.says("ols", "tools")
    assert not trials.says("_ols", "risk._ols(5)")
    assert not trials.says(None, "None")
