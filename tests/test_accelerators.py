"""An environment for GPUs has the versions of the others."""

import re
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
