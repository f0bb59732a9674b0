"""The front page is short, and its ten lines run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_front_page_is_a_page():
    assert len(README.encode()) <= 12 * 1024, "shorten the first sentence of a caption or two"


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
