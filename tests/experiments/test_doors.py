"""An experiment runs, and is what its committed result says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lowering
from lsa_lab.harness.run import folders, records, runner
from lsa_lab.harness.run.laboratory import experiments_of

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = experiments_of("experiments")
each = pytest.mark.parametrize("name", EXPERIMENTS)


@pytest.fixture(scope="session")
def trained_models(tmp_path_factory):
    """A cache of this session: several experiments look into the same models."""
    return tmp_path_factory.mktemp("cache")


@each
def test_the_smoke_tier_runs(name, tmp_path, trained_models, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(trained_models))
    experiment = EXPERIMENTS[name]
    folder = tmp_path / name
    job = runner.Job(experiment, "smoke", experiment.tiers["smoke"], folder)
    with lowering.operations() as kinds:
        outcome = runner.run_one(job)
    assert lowering.lacking(kinds, "cuda") == []
    assert outcome.facts["verdicts"], "an experiment claims something"
    assert all(claim.startswith(f"{name}.") for claim in outcome.facts["verdicts"])


@each
def test_a_committed_result_is_of_the_declared_configuration_and_judged_alike_today(name):
    experiment = EXPERIMENTS[name]
    for tier in list(experiment.tiers)[1:]:
        folder = folders.folder_of(experiment, tier, ROOT / "figures")
        if tier == "laptop" or (folder / "result.nc").exists():
            dataset = runner.load(experiment, tier, folder)
            verdicts = {
                f"{name}.{c.id}": c.verdict for c in runner.judge_result(experiment, dataset)
            }
            assert verdicts == records.last_run(folder)["verdicts"]
            caption = " ".join(experiment.door("figure").caption(dataset).split())
            assert (folder / "caption.txt").read_text("utf-8").startswith(caption)


def test_make_language_fetches_and_runs_what_reads_a_language_model():
    done = subprocess.run(["make", "-n", "language"], cwd=ROOT, capture_output=True, text=True)
    assert "-m experiments fetch\n" in done.stdout
    (words,) = re.findall(r"-m experiments run (.*) --tier laptop", done.stdout)
    assert words.split() == [name for name, each in EXPERIMENTS.items() if each.theme == "language"]


def test_three_doors_of_every_experiment_leave_jax_out():
    doors = ("config", "claims", "figure")
    modules = [f"{each.module}.{door}" for each in EXPERIMENTS.values() for door in doors]
    program = "import importlib, sys\n" + "".join(
        f"importlib.import_module({module!r})\nassert 'jax' not in sys.modules, {module!r}\n"
        for module in modules
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
