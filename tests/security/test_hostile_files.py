"""No loader runs, follows or swells: every hostile file is refused in a sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import hostile
import pytest

READER, ROOT = Path(__file__).with_name("reader.py"), Path(__file__).resolve().parents[2]
# Refusals are these, and say what to do; a raw error of Python's is none.
TYPED = ("ValueError: ", "RefusalError: ", "FileNotFoundError: ")


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """How each loader has ended, by the name of its case."""
    root = tmp_path_factory.mktemp("hostile")
    hostile.lay_out(root)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    words = [sys.executable, READER, root]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line.pop("case"): line for line in lines}


def test_a_hostile_file_is_refused_and_nothing_else_happens(ends):
    cases = [f"{each.loader}: {each.name}" for each in hostile.every()]
    assert len(cases) >= 40
    for case in cases:
        end = ends[case]
        assert end["end"].startswith(TYPED), (case, end)
        assert len(end["end"].splitlines()) == 1, (case, end)
        assert end["events"] == [], (case, end)
        assert end["seconds"] < 1, (case, end)
        assert end["MiB"] < 64, (case, end)


def test_a_loader_that_unpickles_or_follows_links_is_caught(ends):
    """The control."""
    assert "os.system" in ends["unsafe: objects.npy"]["events"]
    assert ends["unsafe: external.h5"]["events"] == ["kernel: secret.h5"]
    assert ends["unsafe: bomb.npz"]["MiB"] > 64
