"""``run NAME -h`` says of every key what it means, what it takes, and its value at each tier."""

import dataclasses
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from lsa_lab.harness.cli import keys, overrides, terminal
from lsa_lab.harness.cli.command_line import main
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run.bounds import Bounded, between
from lsa_lab.harness.run.laboratory import experiments_of

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = experiments_of("experiments")


@dataclass(frozen=True)
class Parent:
    """Inherited by the next."""

    depth: int = 3  # layers of the parent
    runs: int = 2


@dataclass(frozen=True)
class Sizes(Parent):
    # A heading of what follows,
    # on two lines.
    width: int = 4  # of the stream
    rates: tuple[float, ...] = (  # of clipping,
        0.1,
        0.2,  # and some more
    )
    # What a comment above says where there is none beside.
    steps: int | None = None
    seed: int = 0
    """The first docstring
    of a field."""
    depth: int = 5
    pairs: tuple[tuple[str, Parent], ...] = ()


def test_meanings_are_the_comments_beside_the_fields_and_the_docstrings_under_them():
    meanings = {key.name: key.meaning for key in keys.keys_of(Sizes)}
    assert meanings == {
        "depth": keys.HOUSE_WORDS["depth"],  # the child declares it anew, without a comment
        "runs": keys.HOUSE_WORDS["runs"],
        "width": "of the stream",
        "rates": "of clipping, and some more",
        "steps": "What a comment above says where there is none beside.",
        "seed": "The first docstring of a field.",
        "pairs": "",
    }
    headings = {key.name: key.heading for key in keys.keys_of(Sizes) if key.heading}
    assert headings == {"width": "A heading of what follows, on two lines."}
    assert {key.name: key.meaning for key in keys.keys_of(Parent)}[
        "depth"
    ] == "layers of the parent"


def test_types_and_values_are_what_a_command_line_takes():
    words = {f.name: keys.type_word(Sizes, f.name) for f in dataclasses.fields(Sizes)}
    expected = dict(depth="int", runs="int", width="int", rates="float...", steps="int", seed="int")
    assert words == expected | {"pairs": "fixed"}
    assert keys.value_word((0.1, 20_000)) == "0.1 20000"
    assert keys.value_word(("one word", "two")) == "'one word' two"
    assert keys.value_word((("small", 1), ("large one", 2))) == "small, large one"
    assert keys.value_word(()) == "none"


def test_what_no_word_of_a_command_line_can_say_is_refused():
    with pytest.raises(overrides.RefusalError, match="more than a number"):
        overrides.apply(Sizes(), ["--config.pairs", "3"])


def test_the_keys_of_all_experiments_are_readable(capsys):
    assert main(["run", "all", "-h"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= terminal.WIDTH
    words = " ".join(text.split())
    for name, experiment in EXPERIMENTS.items():
        assert f"{name}: {' '.join(experiment.question.split())}" in words
    assert "\033" not in text, "colours are for a terminal"


def test_help_names_each_tiers_value_and_the_way_to_change_it(toy, capsys):
    assert main(["run", "toy", "--help"], package="toy_lab") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "KEY       TYPE    smoke   laptop  paper   MEANING" in lines
    assert "n         int     4       40      100     demonstrations in a prompt (>= 1)" in lines
    assert any("--config.KEY VALUE" in line for line in lines)
    assert main(["run", "toi", "-h"], package="toy_lab") == 2


@pytest.mark.parametrize("command", ["list", "run", "draw", "report"])
def test_help_of_a_command_has_its_options_and_the_exit_status(toy, capsys, command):
    assert main([command, "-h"], package="toy_lab") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"lsa-lab {command}")
    assert ("--config.KEY" in text) == (command == "run")
    assert [f"exit status {code} " in text for code in (0, 1, 2, 3, 130)] == [True] * 5


@pytest.mark.parametrize(("words", "line"), [("run toy -h", "VALUE..."), ("list", "list NAME")])
def test_what_is_to_be_typed_next_names_a_package_that_is_not_the_programs(
    toy, capsys, words, line
):
    for package, named in (("toy_lab", False), ("experiments", True)):
        assert main([*words.split(), "--package", "toy_lab"], package=package) == 0
        assert (f"{line} --package toy_lab" in capsys.readouterr().out) == named


@dataclass(frozen=True)
class Part(Bounded):
    rate: Annotated[float, between(0, 1)] = 0.5  # of the part
    names: tuple[str, ...] = ("a",)  # of it too


@dataclass(frozen=True)
class Whole(Bounded):
    n: int = 3
    part: Part = Part()  # what is a Config of its own


def test_keys_of_a_part_are_changed_listed_and_refused_by_their_whole_name():
    changed = overrides.apply(Whole(), ["--config.part.rate", "0.25", "--config.n=4"])
    assert changed == Whole(4, Part(0.25))
    names = [key.name for key in keys.keys_of(Whole)]
    assert names == ["n", "part.rate", "part.names"]
    assert keys.keys_of(Whole)[1].meaning == "of the part (0 to 1)"
    assert keys.type_word(Whole, "part.names") == "word..."
    for words, message in (
        (["--config.part.rat", "1"], "unknown key --config.part.rat 1: nearest --config.part.rate"),
        (["--config.part.rate", "2"], "--config.part.rate = 2.0: choose a finite number"),
        (["--config.part", "2"], "--config.part is more than a number"),
    ):
        with pytest.raises(RefusalError, match=message):
            overrides.apply(Whole(), words)


@pytest.fixture
def screen(monkeypatch):
    """A terminal of so many columns."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    def columns(count):
        size = os.terminal_size((count, 24))
        monkeypatch.setattr(terminal.shutil, "get_terminal_size", lambda *_, **__: size)

    return columns


def test_weight_is_for_a_terminal_that_wants_it(screen, monkeypatch):
    assert terminal.bold("word") == "\033[1mword\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.bold("word") == terminal.faint("word") == "word"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.bold("word") == "word"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert terminal.bold("word") == "word"


def test_lines_are_as_wide_as_the_terminal_within_reason(screen, monkeypatch):
    widths = []
    for count in (20, 80, 300):
        screen(count)
        widths.append((terminal.width(), terminal.width(most=150)))
    assert widths == [(60, 60), (80, 80), (100, 150)]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert terminal.width(most=150) == terminal.WIDTH


def test_the_last_column_is_wrapped_under_itself():
    rows = terminal.columns([("a", "b " * 60), ("word", "")])
    assert [len(row) for row in rows] == [2, 1]
    assert rows[0][1].startswith("      b")
    assert rows[1] == ["word"]
