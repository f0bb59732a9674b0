"""The hundred changes by hand apply to the library as it is, and the tests that they name exist."""

import functools
import re
from collections import Counter

import pytest

import by_hand

CHANGES = by_hand.changes()
ROOMS = ("theory", "models", "analyses", "selection", "estimators", "tasks")


@functools.cache
def names_of(file):
    return set(re.findall(r"^def (test_\w+)\(", (by_hand.ROOT / "tests" / file).read_text(), re.M))


def missing(tests):
    """Those that name no test of a file."""
    parts = [test.partition("::") for test in tests]
    return [name for file, _, name in parts if name.partition("[")[0] not in names_of(file)]


def test_a_hundred_different_changes_reach_every_room_that_computes():
    assert len({(change.file, change.old, change.new) for change in CHANGES}) == 100
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
