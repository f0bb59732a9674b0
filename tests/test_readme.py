"""README: its imports work, and its example prints what the page says."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
IMPORTS = re.findall(r"^\| .* \| `(from lsa_lab.*?)` \|$", README, re.MULTILINE)


@pytest.mark.parametrize("line", IMPORTS)
def test_imports_of_the_map(line):
    exec(line, {})


def test_the_example_prints_what_the_page_says(python):
    blocks = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
    (program,) = [text for kind, text in blocks if kind == "python"]
    (printed,) = [text for kind, text in blocks if kind == ""]
    left = python(program)
    assert left.returncode == 0, left.stderr
    words, shown = left.stdout.split(), printed.split()
    assert words[:-1] == shown[:-1]  # the last word is a distance at rounding error
    assert float(words[-1]) < 1e-3
