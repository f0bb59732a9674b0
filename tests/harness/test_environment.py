"""A Python without the packages is told in one sentence which one has them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lsa_lab.harness.run import environment

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def elsewhere(tmp_path):
    """The sources that ``python -m experiments`` needs before anything else, in another folder."""
    for name in ("lsa_lab", "experiments"):
        for path in (ROOT / name).rglob("*.py"):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return tmp_path


@pytest.mark.parametrize("installed", [True, False])
def test_without_the_packages_a_sentence_names_the_program_that_has_them(elsewhere, installed):
    if installed:
        (elsewhere / ".venv" / "bin").mkdir(parents=True)
        (elsewhere / ".venv" / "bin" / "lsa-lab").touch()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LAUNCH, "run", "depth"],  # -S: no site-packages
        cwd=elsewhere,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "has no jax" in line
    assert ".venv/bin/lsa-lab run depth" in line
    assert ("activate" in line) == installed
    assert ("make install" in line) != installed


LAUNCH = """if True:
    import runpy, sys
    sys.path.insert(0, "")
    sys.argv[0] = "experiments"
    runpy.run_module("experiments", run_name="__main__")
"""


def test_with_the_packages_nothing_is_said():
    assert environment.advice() is None
