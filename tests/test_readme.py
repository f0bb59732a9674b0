"""The ten lines of the front page run, and every command that is shown is obeyed."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from lsa_lab.harness.cli import scaffold
from lsa_lab.harness.cli.command_line import main
from lsa_lab.harness.run import process
from lsa_lab.lm import sources
from lsa_lab.store import results
from tools.lint.pages import commands

ROOT = Path(__file__).resolve().parents[1]


def test_the_ten_lines_run_and_agree(capsys):
    block, card = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    compile(card, "README.md", "exec")  # it trains for minutes; tests/card runs its like
    exec(compile(block, "README.md", "exec"), {})
    layers, steps = capsys.readouterr().out.strip().split("]\n")
    numbers = [[float(word) for word in text.strip(" []\n").split()] for text in (layers, steps)]
    assert len(numbers[0]) == 5
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-6)


PROGRAM = re.compile(r"(?:\.venv/bin/)?lsa-lab(?= |$)")
PLACEHOLDERS = {"NAME": "depth", "THEME": "descent"}


class Accepted(Exception):
    """The program has nothing to refuse and is about to compute."""


@pytest.fixture
def accepted(monkeypatch, tmp_path):
    """Whether the program takes the words, in an empty folder; it computes nothing."""

    def compute():
        raise Accepted

    monkeypatch.setattr(process, "configure", compute)
    monkeypatch.setattr(sources, "fetch", lambda name: compute())
    monkeypatch.setattr(results, "load", lambda path: compute())
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for folder in ("figures/depth", "figures/one_step/n=20", "figures/one_step", "out/depth"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "result.nc").touch()  # draw and report ask for one
    before = set(sys.modules)

    def take(words: list[str]) -> bool:
        words = ["/".join(PLACEHOLDERS.get(x, x) for x in word.split("/")) for word in words]
        if words == ["new", "experiments/descent/depth"]:  # the package is not in this folder
            return scaffold.place_of(words[1]).listed == "descent.depth"
        try:
            return main(words) == 0
        except Accepted:
            return True

    yield take
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "my_lab":
            del sys.modules[name]


@pytest.mark.parametrize(
    ("page", "least"), [("README.md", 4), ("CONTRIBUTING.md", 12), ("docs/index.md", 3)]
)
def test_every_command_that_is_shown_is_obeyed(page, least, accepted, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    lines = [line for line in commands((ROOT / page).read_text("utf-8")) if PROGRAM.match(line)]
    assert len(lines) >= least
    for line in lines:
        assert accepted(shlex.split(line)[1:]), line


def test_control_a_command_of_yesterday_is_refused(accepted):
    for line in ("run deep", "run depth --config.depth 4", "show depth", "list --tier smoke"):
        assert not accepted(line.split()), line
