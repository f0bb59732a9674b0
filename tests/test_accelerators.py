"""An environment for GPUs has the versions of the others, and no later make undoes it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("lock", ["py311.txt", "py312.txt", "py313.txt", "py314.txt"])
def test_a_gpu_adds_its_packages_and_moves_no_version(lock):
    plain, cuda = (
        set(
            re.findall(
                r"^\S+==\S+", (ROOT / "requirements" / name).read_text("utf-8"), re.MULTILINE
            )
        )
        for name in (lock, f"cuda-{lock}")
    )
    assert plain < cuda
    added = {line.partition("==")[0] for line in cuda - plain}
    assert {"jax-cuda12-plugin", "jax-cuda12-pjrt"} < added
    assert all(name.startswith(("jax-cuda12-", "nvidia-")) for name in added)


def test_an_environment_with_cuda_stays_one(tmp_path):
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")

    def planned(target: str) -> str:
        command = ["make", "-n", target]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout

    assert "requirements/py" in planned("install")
    installed, cuda = tmp_path / ".venv/installed", tmp_path / ".venv/cuda"
    installed.parent.mkdir()
    installed.touch()
    assert "pip install" not in planned("figures")
    cuda.touch()  # what make cuda does first
    os.utime(installed, (0, 0))
    assert "requirements/cuda-py" in planned("install")
    installed.touch()
    assert "pip install" not in planned("figures")
    os.utime(installed, (0, 0))  # as after a change of the lock files
    again = planned("figures")
    assert "requirements/cuda-py" in again
    assert "touch .venv/cuda" in again
