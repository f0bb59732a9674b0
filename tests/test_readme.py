"""The front page is short, its ten lines run, and every command that is shown is obeyed."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from experiments.headlines import FIRST
from lsa_lab.harness.cli import scaffold
from lsa_lab.harness.cli.command_line import main
from lsa_lab.harness.run import process
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.lm import sources

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_front_page_is_a_page():
    assert len(README.encode()) <= 12 * 1024, "shorten FIRST, or the first sentence of a caption"


def test_every_theme_has_a_question_or_two_on_the_front_page():
    experiments = experiments_of("experiments").values()
    themes = [each.theme for each in experiments if each.name in FIRST]
    assert len(themes) == len(FIRST)
    assert set(themes) == {each.theme for each in experiments}
    assert max(map(themes.count, themes)) <= 2


def test_the_ten_lines_run_and_agree(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    layers, steps = capsys.readouterr().out.strip().split("]\n")
    numbers = [[float(word) for word in text.strip(" []\n").split()] for text in (layers, steps)]
    assert len(numbers[0]) == 5
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-6)


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda path: path.name)
def test_links_of_the_front_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


PROGRAM = re.compile(r"(?:\.venv/bin/)?lsa-lab(?= |$)")
PLACEHOLDERS = {"NAME": "depth", "THEME": "descent"}


def commands(page: str) -> list[str]:
    """The command lines of a page, in blocks of commands and in the text, without comments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    fenced = re.findall(r"^```(.*?)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fenced if language in ("", "sh")]
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", outside)]
    return lines + [span for span in spans if re.match(r"(\.venv/bin/|lsa-lab |make )", span)]


class Accepted(Exception):
    """The program has nothing to refuse and is about to compute."""


@pytest.fixture
def accepted(monkeypatch, tmp_path):
    """Whether the program takes the words, in an empty folder; it computes nothing."""

    def compute():
        raise Accepted

    monkeypatch.setattr(process, "configure", compute)
    monkeypatch.setattr(sources, "fetch", lambda name: compute())
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for folder in ("figures/depth", "figures/one_step", "out/depth"):
        (tmp_path / folder).mkdir(parents=True)
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
    lines = [line for line in commands(page) if PROGRAM.match(line)]
    assert len(lines) >= least
    for line in lines:
        assert accepted(shlex.split(line)[1:]), line


def test_control_a_command_of_yesterday_is_refused(accepted):
    for line in ("run deep", "run depth --config.depth 4", "show depth", "list --tier smoke"):
        assert not accepted(line.split()), line


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/index.md"])
def test_a_shown_program_exists_after_make_without_activation(page):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    lines, active = commands(page), False
    for line in lines:
        active = active or line == "source .venv/bin/activate"
        if line.startswith("make "):
            assert line.split()[1] in targets, line
        elif not line.startswith(("source ", ".venv/bin/", "http")):
            assert active, f"{line}: say .venv/bin/, or activate it first"
