"""A small part of ``make chaos CHAOS=misspelt``, and its controls."""

import contextlib
import time
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


def boxed(*_):
    raise SystemExit(2)


def writing(*_):
    Path("left").touch()
    raise overrides.RefusalError("n = 3: choose 4; nearest 4")


def mute(*_):
    raise overrides.RefusalError("no")


def slow(*_):
    while True:
        pass


@pytest.mark.parametrize("wrong", [raw, boxed, writing, mute, slow])
def test_a_program_that_ends_in_another_way_is_caught(wrong, monkeypatch):
    """The controls."""
    monkeypatch.setattr(overrides, "apply", wrong)
    monkeypatch.setattr(generated, "MOST_SECONDS", 0.3)
    with pytest.raises(Lost):
        generated.configs(60, seed=0)


def work(seconds, swallowed=()):
    began = time.process_time()
    while time.process_time() - began < seconds:
        with contextlib.suppress(*swallowed):
            while time.process_time() - began < seconds:
                pass


@pytest.mark.parametrize("swallowed", [OSError, Exception, BaseException])
def test_work_that_swallows_the_end_of_its_time_is_caught(swallowed, monkeypatch):
    monkeypatch.setattr(generated, "MOST_SECONDS", 0.2)
    with pytest.raises(Lost, match=r"^slow: Late: "), generated._judge("slow"):
        work(0.3, [swallowed])


def test_control_quick_work_is_in_time():
    with generated._judge("quick"):
        work(0.01)
