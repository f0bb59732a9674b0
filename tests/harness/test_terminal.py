"""Weight and width are for a terminal; a pipe and a log have plain text."""

import os
import sys

import pytest

from lsa_lab.harness.cli import terminal


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
