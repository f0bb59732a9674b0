"""Every notebook runs within a minute; `make notebooks` runs this file.

The executed notebooks stay in .cache/notebooks.
"""

import re
import resource
from pathlib import Path

import jax
import nbformat
import pytest
from nbmake.nb_run import NotebookRun

from tools.lessons import ROOT, SCRIPTS, build

MINUTE = 60
PRINTED = {  # what a lesson prints, and the values between which its number lies
    "first_theorem": {r"largest difference ([\d.e-]+)": (0, 1e-12)},
    "train_and_dissect": {
        r"departure of a token from its map, relative: ([\d.e-]+)": (0, 1e-4),
        r"effective heads \[([\d.]+)": (1, 4),
    },
    "does_depth_amplify": {
        r"largest difference: ([\d.e-]+)": (0, 1e-12),
        r"than after layer 1: (\d+)%": (50, 90),
    },
    "choose_demonstrations": {
        r"gap of the subset ([\d.]+)": (0, 0.5),
        r"matched ([\d.]+)": (0, 0.5),
    },
    "design_a_layer": {
        r"step 0.1: floor ([\d.]+)": (0.0705, 0.0715),
        r"step 0.1: floor .* at 128 tokens ([\d.]+)": (0.06, 0.09),
    },
}


@pytest.fixture(autouse=True)
def kernel_environment(monkeypatch):
    """What a kernel takes over from this process besides tests/conftest.py: the same cache of
    compiled programs; this Python's own kernel; nothing of the person's IPython profile."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("IPYTHONDIR", str(ROOT / ".cache" / "ipython"))


def execute(path: Path):
    """nbmake's result of the notebook, which is written back with its outputs."""
    result = NotebookRun(path, default_timeout=MINUTE, kernel="python3").execute()
    nbformat.write(result.nb, path)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_runs_within_a_minute(script):
    """A minute of a processor, which a busy machine does not stretch."""
    path, before = build(script), resource.getrusage(resource.RUSAGE_CHILDREN)
    result = execute(path)
    assert result.error is None, result.error.trace
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert 1 < seconds < MINUTE, "the kernel is a child that has ended"
    outputs = [output for cell in result.nb.cells for output in cell.get("outputs", ())]
    text = "".join(output.get("text", "") for output in outputs)
    for pattern, (low, high) in PRINTED.get(script.stem, {}).items():
        assert low <= float(re.search(pattern, text)[1]) <= high, pattern
    assert any("image/png" in output.get("data", ()) for output in outputs), "no figure is inline"
