"""Experiments side by side leave the bits of a series, and stop and fail as one does."""

import json
import os
from pathlib import Path

import pytest

from lsa_lab.harness.run.clock import Left, Past
from lsa_lab.harness.run.workload import Workload
from lsa_lab.store import results

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
    assert lines[-1] == "There was no earlier result to compare with."
    assert not list((toy / "cache" / "checkpoints").iterdir())
    assert three("run", "all", "--out", "b") == 0
    assert digests("a") == digests("b")
    assert len(digests("a")) == 3


def test_one_that_diverged_and_one_that_cannot_be_judged_leave_the_others_alone(three, capsys):
    raised = "from lsa_lab.training.status import DivergedError\nraise DivergedError('no run left')"
    changed("compute", "theme.first", raised)
    changed("claims", "theme.second", "raise ValueError('no samples')")
    assert three("run", "all", "--out", "a", "--together", "2") == 3
    said = capsys.readouterr().out
    assert "error: first: no run left; its checkpoints are kept in" in said
    assert "error: second was computed but not judged: no samples" in said
    assert sorted(digests("a")) == [".second.new", "third"]


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


@pytest.mark.parametrize(("hours", "together"), [("0.003", ["--together", "2"]), ("0.0005", [])])
def test_when_the_hours_are_over_it_says_what_is_left(three, toy, capsys, hours, together):
    for name in ("theme.first", "theme.second"):
        changed("compute", name, WAITING)
    words = ["run", "all", "--hours", hours, *together]
    assert three(*words) == 130
    told = capsys.readouterr().err
    assert told.startswith(f"\n{hours} hours are over; first ")
    assert "not begun: second, third" in told or ("second " in told and "not begun: third" in told)
    go_on = f"lsa-lab run first second third --tier laptop {' '.join([*together, *words[2:4]])}"
    assert f"to go on from the last checkpoint: {go_on} --package two_lab" in told
    (spent, *_) = (toy / "cache" / "checkpoints").rglob("spent.json")
    assert 0 < json.loads(spent.read_text())["seconds"] < 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--together 0", "--together 0: choose 1 to "),
        ("--together 999", "nearest "),
        ("--hours 0", "--hours 0: choose a number above 0"),
        ("--hours nan", "choose a number above 0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(three, capsys, words, said):
    assert three("run", "all", *words.split()) == 2
    assert said in capsys.readouterr().err
    assert not os.path.exists("figures")


def test_the_time_left_of_two_at_a_time_is_that_until_the_last_one_ends():
    load = Workload({"a": Past(60.0), "b": Past(30.0), "c": Past(20.0), "d": Past()}, 2)
    assert load.seconds("d") == pytest.approx(110 / 3)
    load.begin("a")
    load.begin("b")
    left = load.left({"a": Left(60.0), "b": Left(30.0)})
    assert left.seconds == pytest.approx(60 + 20), "d follows on b, and c on a"
    assert not left.at_least
    assert load.left({"a": Left(60.0)}).at_least, "b has not said how long it will take"


def test_what_waits_is_expected_at_the_pace_of_what_is_over(monkeypatch):
    now = iter([0.0, 0.0, 60.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    load = Workload({"a": Past(30.0), "b": Past(20.0)}, 1)
    load.begin("a")
    load.end("a")  # in 60 seconds, twice as many as last time
    assert load.left({}).seconds == pytest.approx(40.0)
