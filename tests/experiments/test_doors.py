"""Every experiment has its doors, runs, and is what its committed result says."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lowering
from lsa_lab.harness.run import folders, records, runner
from lsa_lab.harness.run.laboratory import TIERS, experiments_of
from lsa_lab.store import results

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = experiments_of("experiments")
DOORS = ("config", "compute", "claims", "figure")
WITHOUT_JAX = ("config", "claims", "figure")


@pytest.fixture(scope="session")
def trained_models(tmp_path_factory):
    """A cache of this session: several experiments look into the same models."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("name", EXPERIMENTS)
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


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_smoke_and_laptop_tiers_a_question_and_an_answer(name):
    experiment = EXPERIMENTS[name]
    names = list(experiment.tiers)
    assert names[:2] == ["smoke", "laptop"]
    assert names == [tier for tier in TIERS if tier in names]
    assert experiment.question.endswith("?")
    folder = ROOT / "figures" / name
    caption = experiment.door("figure").caption(results.load(folder / "result.nc"))
    answer = " ".join(caption.split()).partition(". ")[0]
    assert 20 < len(answer) <= 200, answer


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_committed_results_are_small_and_of_the_declared_configuration(name):
    experiment = EXPERIMENTS[name]
    for tier in list(experiment.tiers)[1:]:
        folder = folders.folder_of(experiment, tier, ROOT / "figures")
        if (folder / "result.nc").exists():
            dataset = runner.load(experiment, tier, folder)
            facts = records.last_run(folder)
            verdicts = {f"{name}.{c.id}": c.verdict for c in runner.judged(experiment, dataset)}
            assert verdicts == facts["verdicts"]
            most = (1 if tier == "laptop" else 2) << 20
            assert max(f.stat().st_size for f in folder.iterdir() if f.is_file()) < most


def test_make_language_fetches_and_runs_what_reads_a_language_model():
    done = subprocess.run(["make", "-n", "language"], cwd=ROOT, capture_output=True, text=True)
    assert "-m experiments fetch\n" in done.stdout
    (words,) = re.findall(r"-m experiments run (.*) --tier laptop", done.stdout)
    needing = [name for name, each in EXPERIMENTS.items() if hasattr(each.door("config"), "NEEDS")]
    assert words.split() == needing
    assert needing == [name for name, each in EXPERIMENTS.items() if each.theme == "language"]


def test_three_doors_of_every_experiment_leave_jax_out():
    modules = [f"{each.module}.{door}" for each in EXPERIMENTS.values() for door in WITHOUT_JAX]
    program = "import importlib, sys\n" + "".join(
        f"importlib.import_module({module!r})\nassert 'jax' not in sys.modules, {module!r}\n"
        for module in modules
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def imports(path: Path) -> set[str]:
    """The modules that a file imports, inside functions as well."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            modules |= {base, *filter(is_module, (f"{base}.{alias.name}" for alias in node.names))}
    return modules


def is_module(name: str) -> bool:
    """Whether this is a module of the repository, and not what one defines."""
    place = ROOT.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").exists()


def faults(path: Path, modules: set[str]) -> list[str]:
    """What a file of the wing may not import, each as a sentence."""
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    sentences = []
    for module in sorted(modules):
        target = module.split(".")[1:] if module.split(".")[0] == "experiments" else []
        theme, own = (target[:1], target[:2]) if target else ([], [])
        if theme and theme[0] not in (parts[0], "models"):
            sentences.append(f"{'.'.join(parts)} imports {module}, of another theme")
        elif len(target) > 2 and len(parts) > 2 and own != list(parts[:2]):
            sentences.append(f"{'.'.join(parts)} imports {module}, of another experiment")
        elif len(target) > 2 and len(parts) == 2:
            sentences.append(f"{'.'.join(parts)} imports {module}, which is one experiment's")
        elif target[2:3] == ["compute"]:
            sentences.append(f"{'.'.join(parts)} imports {module}: only the harness does")
        elif target[2:3] == ["figure"] and parts[-1] != "figure":
            sentences.append(f"{'.'.join(parts)} imports {module}: nobody does")
        elif target[2:3] == ["claims"] and parts[-1] in ("config", "compute"):
            sentences.append(f"{'.'.join(parts)} imports {module}, which is above it")
        elif module.split(".")[:2] == ["lsa_lab", "harness"] and parts[-1] == "claims":
            sentences.append(f"{'.'.join(parts)} imports {module}: claims judge, they do not draw")
    return sentences


FILES = sorted(path for path in (ROOT / "experiments").glob("*/**/*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_of_the_wing_go_down(path):
    assert not faults(path, imports(path))


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("flow/grads/compute.py", "experiments.clipping.why_a_rate.config"),
        ("flow/grads/figure.py", "experiments.flow.grads.compute"),
        ("flow/grads/compute.py", "experiments.flow.grads.claims"),
        ("flow/grads/config.py", "experiments.flow.amplification.config"),
        ("flow/pairs.py", "experiments.flow.grads.config"),
        ("models/specs.py", "experiments.heads.head_pruning.config"),
        ("flow/grads/claims.py", "experiments.flow.grads.figure"),
    ],
)
def test_a_wrong_import_is_refused(file, module):
    assert len(faults(ROOT / "experiments" / file, {module})) == 1


def test_a_relative_import_is_seen():
    assert "experiments.flow.grads.claims" in imports(ROOT / "experiments/flow/grads/figure.py")
    template = ROOT / "lsa_lab/harness/cli/templates/experiment/figure.py"
    assert "lsa_lab.harness.cli.templates.experiment.claims" in imports(template)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_four_doors_and_at_most_three_more(name):
    folder = ROOT.joinpath(*EXPERIMENTS[name].module.split("."))
    names = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert names >= set(DOORS)
    assert len(names) <= len(DOORS) + 3, names
