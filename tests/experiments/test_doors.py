"""The smoke tier of an experiment runs, and its committed result can be judged."""

import subprocess
import sys
from pathlib import Path

import pytest

import lowering
from experiments import __main__ as program
from lsa_lab.store import results

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def trained_models(tmp_path_factory):
    """A cache of this session: several experiments look into the same models."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("name", program.MODULES)
def test_the_smoke_tier_runs(name, tmp_path, trained_models, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(trained_models))
    with lowering.operations() as kinds:
        claims = program.run(name, "smoke", tmp_path / name)
    assert lowering.lacking(kinds, "cuda") == []
    assert claims, "an experiment claims something"
    files = {path.name for path in (tmp_path / name).iterdir()}
    assert files >= {"result.nc", "figure.pdf", "figure.png"}


@pytest.mark.parametrize("name", program.MODULES)
def test_a_committed_result_can_be_judged(name):
    assert program.judge(name, results.load(ROOT / "figures" / name / "result.nc"))


def test_three_modules_of_every_experiment_leave_jax_out():
    parts = ("config", "claims", "figure")
    modules = [f"{module}.{part}" for module in program.MODULES.values() for part in parts]
    code = "import importlib, sys\n" + "".join(
        f"importlib.import_module({module!r})\nassert 'jax' not in sys.modules, {module!r}\n"
        for module in modules
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
