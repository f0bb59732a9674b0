"""A small part of ``make chaos CHAOS=misspelt``, and its controls."""

from pathlib import Path

import pytest

from lsa_lab.harness.cli import overrides
from tools.chaos import generated
from tools.chaos.disk import Lost


@pytest.fixture(autouse=True)
def nothing_runs(tmp_path):
    with generated.nothing_runs(tmp_path):
        yield


def test_a_configuration_that_nobody_would_write_is_accepted_or_refused_in_a_sentence():
    ends = generated.configs(200, seed=0)
    assert ends["refused"] > 50
    assert ends["refused in Python"] > 50
    assert ends["accepted"] + ends["accepted in Python"] > 3


def test_a_misspelt_command_line_is_accepted_or_refused_in_a_sentence():
    assert generated.lines(60, seed=0)["refused"] > 30


def raw(*_):
    raise KeyError("n")


def writing(*_):
    Path("left").touch()
    raise overrides.RefusalError("n = 3: choose 4; nearest 4")


@pytest.mark.parametrize("wrong", [raw, writing])
def test_a_program_that_ends_in_another_way_is_caught(wrong, monkeypatch):
    """The controls."""
    monkeypatch.setattr(overrides, "apply", wrong)
    with pytest.raises(Lost):
        generated.configs(60, seed=0)
