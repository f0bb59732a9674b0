"""What a run says while it lasts, and what it takes, which its record tells."""

import io
import json
import re
import time

import pytest
from rich.console import Console

from lsa_lab.harness.run import clock, progress


def test_without_a_terminal_progress_is_plain_lines(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.setattr(progress, "FIRST", 0.01)
    bars = progress.bars(Console(file=io.StringIO()))
    with progress.screen(bars), progress.own_bar(bars, "toy (last time 0:01:40)"):
        task = bars.add_task("part [brackets]", total=4)
        bars.update(task, completed=1)
        bars.update(bars.add_task("over", total=1), completed=1)
        bars.add_task("begun", total=9)
        bars.add_task("over before", total=9, completed=9)
        time.sleep(0.2)
    assert bars.tasks == []
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "toy (last time 0:01:40), 0:00:00 elapsed"
    assert lines[1] == "part [brackets], 25 %, 0:00:00 elapsed"
    assert "begun, 0 %, compiling, 0:00:00 elapsed" in lines
    assert not [line for line in lines if "\033" in line or "over" in line]


@pytest.mark.parametrize("colours", [True, False])
def test_on_a_terminal_each_part_has_a_bar_and_its_time_left(monkeypatch, colours):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")
    screen = io.StringIO()
    bars = progress.bars(Console(file=screen, force_terminal=True, width=100))
    now = [0.0]
    bars.get_time = lambda: now[0]
    with progress.screen(bars), progress.own_bar(bars, "toy (first time)"):
        task = bars.add_task("part", total=6)
        for now[0] in (5.0, 10.0, 15.0, 20.0):
            bars.advance(task)
        assert progress.words(bars.tasks[-1]) == "part, 67 %, 0:00:10 left"
        bars.refresh()
    text = screen.getvalue()
    assert bool(re.search(r"\033\[[\d;]*3\d", text)) == colours
    plain = re.sub(r"\033\[[\d;?]*\w", "", text)
    rows = [line.strip() for line in re.split(r"[\r\n]+", plain) if line.strip()]
    assert any(re.fullmatch(r"toy \(first time\) +━+ +0:00:20", row) for row in rows), rows
    assert any(re.fullmatch(r"part +[━╸╺ ]+ 67% 0:00:20 0:00:10 left", row) for row in rows), rows


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ([10, 20, 30, 40], "0:01:00 left"),
        ([60, 70, 80, 90], "0:01:00 left"),  # the first step waits for the compiler
        ([10], ""),  # of one step nothing follows
        ([10, 20, 60, 100], ""),  # it gets slower and slower
        ([10, 11, 30, 31], ""),  # two halves are alike, and their parts are not
    ],
)
def test_the_time_left_is_said_where_it_is_right(seconds, words):
    bars = progress.bars(Console(file=io.StringIO()))
    now = [0.0]
    bars.get_time = lambda: now[0]
    task = bars.add_task("part", total=10)
    assert progress.left_words(bars.tasks[0]) == "compiling"
    for now[0] in seconds:
        bars.advance(task)
    assert progress.left_words(bars.tasks[0]) == words
    if words:  # it falls while a step lasts
        now[0] += 5
        assert progress.left_words(bars.tasks[0]) == "0:00:55 left"


def test_a_run_leaves_its_seconds_its_memory_and_its_start(toy, program):
    assert program("run", "toy") == 0
    facts = json.loads((toy / "figures" / "toy" / "config.json").read_text())
    assert 0 < facts["wall_time"] < 60
    assert 10**7 < facts["memory"] < 10**11
    assert facts["start"] in ("cold", "warm", None)


def test_cold_is_most_programs_compiled_anew(toy):
    spent = clock.Spent(toy / "checkpoints")
    assert spent.start is None
    spent.listen(clock._MISSES)
    assert spent.start == "cold"
    spent.listen(clock._HITS, more="facts")
    assert spent.start == "warm"


def test_a_long_run_says_before_it_begins_what_it_took_last_time(toy, program, capsys):
    words = ("run", "toy", "--tier", "paper")
    assert program(*words) == 0
    first = capsys.readouterr().out.splitlines()[1]
    assert re.fullmatch(r"toy \(paper\), on \d+ cores of a CPU: first time", first)
    assert program(*words, "--out", "elsewhere") == 0
    again = capsys.readouterr().out.splitlines()[1]
    assert re.fullmatch(r"toy .* of a CPU: last time 0:00:0\d(, \w+)?, \d\.\d GB", again)
    assert program(*words, "--config.n", "7") == 0
    own = capsys.readouterr().out.splitlines()[1]
    assert re.fullmatch(r"toy .* of a CPU: with the tier's own values it took 0:00:0\d.*", own)
    assert program("run", "toy") == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("toy (laptop): 0."), "short ones"


def test_what_was_reproduced_on_this_machine_tells_how_long_it_takes(toy, program, capsys):
    assert program("run", "toy", "--tier", "paper", "--beside") == 0
    assert "first time" in capsys.readouterr().out
    assert program("run", "toy", "--tier", "paper") == 0
    assert "last time 0:00:0" in capsys.readouterr().out


def test_a_run_that_was_killed_does_not_know_its_time(toy):
    spent = clock.Spent(toy / "checkpoints")
    assert spent.seconds is not None
    with pytest.raises(KeyboardInterrupt), spent.keep():
        raise KeyboardInterrupt
    again = clock.Spent(toy / "checkpoints")
    assert again.resumed
    assert again.seconds is not None
    inside = again.keep()
    inside.__enter__()  # and then it is killed
    assert clock.Spent(toy / "checkpoints").seconds is None
