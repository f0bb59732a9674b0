"""Experiments side by side leave the bits of a series, and stop and fail as one does."""

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from lsa_lab.store import results
from lsa_lab.training import console

ROOT = Path(__file__).parents[2]
WAITING = """
import time
(checkpoints / "waiting").touch()
time.sleep(300)
"""


@pytest.fixture
def three(copies, monkeypatch):
    """A package of three experiments that other processes can import."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return copies("theme.first", "theme.second", "wing.third")


def changed(door, name, line):
    """Put a line at the start of what an experiment's door does; ``name`` is that of its folder."""
    file = Path("two_lab", *name.split("."), f"{door}.py")
    text = file.read_text("utf-8")
    head, rest = text.split("):\n", 1)
    body = "".join(f"    {part}\n" for part in line.strip().splitlines())
    file.write_text(f"{head}):\n{body}{rest}", "utf-8")


def digests(folder):
    return {
        file.parent.name: results.load(file).attrs["contents_sha256"]
        for file in Path(folder).rglob("result.nc")
    }


def test_the_results_are_those_of_a_series_and_every_line_says_whose_it_is(three, toy, capsys):
    changed("compute", "theme.second", "print('a word')")
    assert three("run", "all", "--out", "a", "--together", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    names = ("first", "second", "third")
    assert [sum(line.startswith(f"{n} (laptop): ") for line in lines) for n in names] == [1, 1, 1]
    assert "second: a word" in lines
    assert lines[0] == "3 experiments at the laptop tier"
    assert lines[-2] == "There was no earlier result to compare with."
    assert not list((toy / "cache" / "checkpoints").iterdir())
    assert three("run", "all", "--out", "b") == 0
    assert digests("a") == digests("b")
    assert len(digests("a")) == 3


def test_side_by_side_too_what_is_committed_is_left_alone(three, toy):
    assert three("run", "all", "--beside", "--together", "2") == 0
    written = [file.relative_to(toy) for file in toy.rglob("result.nc")]
    assert sorted(file.parent.name for file in written) == ["first", "second", "third"]
    assert {file.parts[:2] for file in written} == {("cache", "reproduced")}


@pytest.mark.slow
def test_one_that_diverged_and_one_that_cannot_be_judged_leave_the_others_alone(three, capsys):
    raised = "from lsa_lab.training.status import DivergedError\nraise DivergedError('no run left')"
    changed("compute", "theme.first", raised)
    changed("claims", "theme.second", "raise ValueError('no samples')")
    assert three("run", "all", "--out", "a", "--together", "2") == 3
    said = capsys.readouterr().out
    assert "error: first: no run left; its checkpoints are kept in" in said
    assert "error: second was computed but not judged: no samples" in said
    second, third = sorted(digests("a"))
    assert re.fullmatch(r"\.second-\w{12}\.new", second)
    assert third == "third"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("raise RuntimeError('broken')", "ended with status 1"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was ended by signal 9, as by a lack of memory"),
    ],
)
def test_an_error_ends_all_and_says_how_to_go_on(three, toy, capsys, line, what):
    changed("compute", "theme.first", line)
    changed("compute", "theme.second", WAITING)
    assert three("run", "all", "--together", "2") == 1
    told = capsys.readouterr()
    words = "run first second third --tier laptop --together 2 --package two_lab"
    assert f"error: first {what}, without a result; to go on: lsa-lab {words}" in told.err
    if "broken" in line:
        assert "first: RuntimeError: broken" in told.out.splitlines()


def test_ctrl_c_stops_all_at_a_checkpoint_and_says_how_to_go_on(three, toy, capsys):
    for name in ("theme.first", "theme.second"):
        changed("compute", name, WAITING)

    def interrupt():
        while len(list((toy / "cache" / "checkpoints").rglob("waiting"))) < 2:
            time.sleep(0.05)
        console.interrupt()

    threading.Thread(target=interrupt, daemon=True).start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background
    assert three("run", "all", "--together", "2") == 130
    signal.signal(signal.SIGINT, before)
    go_on = "lsa-lab run first second third --tier laptop --together 2 --package two_lab"
    told = capsys.readouterr()
    assert told.err == f"\ninterrupted; to go on from the last checkpoint: {go_on}\n"
    assert "Traceback" not in told.out
    for spent in (toy / "cache" / "checkpoints").rglob("spent.json"):
        assert 0 < json.loads(spent.read_text())["seconds"] < 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--together 0", "--together 0: choose 1 to "),
        ("--together 999", "nearest "),
    ],
)
def test_numbers_that_make_no_sense_are_refused(three, capsys, words, said):
    assert three("run", "all", *words.split()) == 2
    assert said in capsys.readouterr().err
    assert not os.path.exists("figures")
