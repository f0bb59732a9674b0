"""The time left is that of whole experiments, and never nothing while something is to do."""

import io
import json
import re
import shutil
import time

import pytest
from rich.console import Console

from lsa_lab.harness.run import measured, progress
from lsa_lab.harness.run.clock import Clock, Left, Part, Past, Running


@pytest.fixture
def at(monkeypatch):
    """A function that sets the clock on the wall."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return lambda seconds: now.__setitem__(0, seconds)


def test_the_time_left_is_what_each_took_last_time_at_the_pace_of_this_time(at):
    clock = Clock([Past(10.0), Past(), Past(30.0)])
    clock.begin()
    at(4.0)
    assert clock.left_of_this() == Left(6.0)
    assert clock.left() == Left(6 + 20 + 30), "one that never ran takes as long as the others"
    at(20.0)
    clock.begin()
    assert clock.left_of_this() == Left(40.0), "the first took twice as long as last time"
    assert clock.left() == Left(40 + 60)


def test_an_experiment_that_takes_longer_than_last_time_has_an_unknown_time_left(at):
    clock = Clock([Past(10.0, start="warm"), Past(5.0)])
    clock.begin()
    at(12.0)
    assert str(clock.left_of_this()) == "time left unknown"
    assert str(clock.left()) == "over 0:00:05 left"
    assert clock.share() is None
    clock.follow([Running("a", 0.0, 0.0, 0.5, None, 12.0)])
    assert str(clock.left_of_this()) == "over 0:00:12 left", "what the bar itself says is the least"
    assert str(Clock([Past()]).left()) == "time left unknown"


def test_parts_that_are_slower_than_last_time_make_the_rest_slower(at):
    parts = (Part("a", 0.0, 40.0), Part("b", 40.0, 80.0))
    clock = Clock([Past(100.0, parts)])
    clock.begin()
    at(80.0)
    clock.follow(
        [Running("a", 0.0, 0.0, 1.0, 80.0, None), Running("b", 80.0, 0.0, 0.0, None, None)]
    )
    pace = (80 + 10) / (40 + 10)  # twice as slow, steadied by a tenth of last time
    assert clock.left_of_this().seconds == pytest.approx(60 * pace)
    at(90.0)  # nothing is reported for a while: the time left falls by what passes
    assert clock.left_of_this().seconds == pytest.approx(60 * pace - 10)
    at(160.0)
    clock.follow(
        [Running("a", 0.0, 0.0, 1.0, 80.0, None), Running("b", 80.0, 0.0, 1.0, 160.0, None)]
    )
    left = clock.left_of_this().seconds
    assert 20 < left < 50, "its parts are over, the rest of it is not"
    assert 0.75 < clock.share() < 0.9


def test_what_is_taken_from_the_cache_is_no_sign_of_a_fast_pace(at):
    parts = (Part("training", 5.0, 65.0), Part("tuning", 65.0, 85.0))
    clock = Clock([Past(100.0, parts)])
    clock.begin()
    at(13.0)  # no training: tuning began at once, and is half done at last time's pace
    clock.follow([Running("tuning", 3.0, 0.0, 0.5, None, 9.0)])
    assert clock.left_of_this().seconds == pytest.approx(25.0)
    # The same after Ctrl-C: a training goes on from its checkpoint at 80 %.
    clock.follow([Running("training", 7.0, 0.8, 0.9, None, 5.0)])
    assert clock.left_of_this().seconds == pytest.approx(100 - 59)


def test_the_last_second_is_shown_as_one_and_not_as_none():
    assert str(Left(0.2)) == "0:00:01 left"
    assert str(Left(0.0)) == "time left unknown"
    assert str(Past(102.0, start="cold")) == "last time 0:01:42, cold"


def test_without_a_terminal_progress_is_plain_lines(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.01)
    clock = Clock([Past(100.0)])
    bars = progress.Bars(clock)
    console = Console(file=io.StringIO())
    with progress.screen(bars.rows, console), bars.experiment("toy", Past(100.0)):
        task = bars.add_task("part [brackets]", total=4)
        bars.update(task, completed=1)
        time.sleep(0.2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "toy (last time 0:01:40): 0 %, 0:00:00 elapsed, 0:01:40 left"
    assert lines[1] == "part [brackets]: 25 %, 0:00:00 elapsed"
    assert not [line for line in lines if "\033" in line]


@pytest.mark.parametrize("colours", [True, False])
def test_on_a_terminal_the_whole_has_the_time_left_and_the_parts_have_none(monkeypatch, colours):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    clock = Clock([Past(100.0)])
    bars = progress.Bars(clock)
    with progress.screen(bars.rows, console), bars.experiment("toy", Past(100.0)):
        bars.update(bars.add_task("part", total=4), completed=4)
        time.sleep(0.6)
        parts = bars.take_away()
    text = screen.getvalue()
    assert bool(re.search(r"\033\[[\d;]*3\d", text)) == colours
    plain = re.sub(r"\033\[[\d;?]*\w", "", text)
    rows = [line.strip() for line in re.split(r"[\r\n]+", plain) if line.strip()]
    assert any(re.fullmatch(r"toy .* 0:0(1:40|0:9\d) left", row) for row in rows), rows
    assert any(re.fullmatch(r"part .* 100 % 0:00:00", row) for row in rows), rows
    assert [part.label for part in parts] == ["part"]


def test_a_run_leaves_its_seconds_its_memory_and_its_start(toy, program):
    assert program("run", "toy") == 0
    facts = json.loads((toy / "figures" / "toy" / "config.json").read_text())
    assert 10**7 < facts["memory"] < 10**11
    assert facts["start"] in ("cold", "warm", None)
    (file,) = (toy / "cache" / "times").iterdir()
    past, memory = measured.last(file.stem, None, None)
    assert past.seconds >= facts["wall_time"]
    assert memory == facts["memory"]


def test_a_result_without_these_facts_is_read_as_before(toy):
    facts = {"config": {"n": 1}, "wall_time": 7.0}
    assert measured.last("toy-0", facts, {"n": 1}) == (Past(7.0), None)
    assert measured.last("toy-0", facts, {"n": 2}) == (Past(), None), "another configuration"
    assert measured.last("toy-0", None, {}) == (Past(), None)


def test_cold_is_most_programs_compiled_anew():
    meter = measured.Meter()
    assert meter.start is None
    meter.listen(measured._MISS)
    assert meter.start == "cold"
    meter.listen(measured._HIT, more="facts")
    assert meter.start == "warm"


def test_a_long_run_says_before_it_begins_what_was_measured_and_nothing_else(toy, program, capsys):
    words = ("run", "toy", "--tier", "paper")
    assert program(*words) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("toy (paper): never measured; what is left is said once its parts")
    assert program(*words) == 0
    again = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(
        r"toy \(paper\): 0:00:0\d and \d\.\d GB, as last time on this machine", again
    )
    shutil.rmtree(toy / "cache" / "times")
    assert program(*words) == 0
    elsewhere = capsys.readouterr().out.splitlines()[0]
    assert elsewhere.endswith(" GB, as figures/toy/paper says")
    assert program("run", "toy") == 0
    assert capsys.readouterr().out.startswith("toy (laptop): 0."), "short ones say nothing before"


def test_a_part_that_has_shown_its_speed_says_once_what_is_left(at):
    bars = progress.Bars(Clock([Past()]))
    bars.get_time = time.monotonic
    with bars.experiment("toy", Past()):
        task = bars.add_task("training", total=1000)
        assert bars.estimates() == []
        for done in (1, 2):
            at(10.0 * done)
            bars.update(task, completed=done)
        (line,) = bars.estimates()
        assert re.match(r"training: at its speed 2:\d\d:\d\d left; \d\.\d GB so far", line)
        assert bars.estimates() == []


def test_a_run_that_was_killed_does_not_know_its_time(toy):
    spent = measured.Spent(toy / "checkpoints")
    assert spent.seconds is not None
    with pytest.raises(KeyboardInterrupt), spent.kept():
        raise KeyboardInterrupt
    again = measured.Spent(toy / "checkpoints")
    assert again.resumed
    assert again.seconds is not None
    inside = again.kept()
    inside.__enter__()  # and then it is killed
    assert measured.Spent(toy / "checkpoints").seconds is None
