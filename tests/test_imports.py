"""Imports go down, and heavy packages wait until they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Rooms by floor. A room may import rooms of lower floors, and itself where it says so.
FLOORS = [
    {"prompts", "claims", "results"},
    {"tasks", "estimators"},
    {"models", "theory"},
    {"training", "analyses", "selection", "interop", "lm"},
    {"harness"},
]
# Files at the top that belong to a room.
ANNEXES = {
    "arguments": "prompts",
    "cache": "results",
    "cells": "results",
    "cores": "results",
    "extras": "prompts",
    "provenance": "results",
    "safe_files": "results",
    "scaling": "prompts",
    "plain_netcdf": "results",
    "statistics": "claims",
    "side_by_side": "prompts",
    "variates": "prompts",
    "checkpoints": "results",
    "grids": "results",
    "hosts": "results",
    "transports": "results",
    "console": "training",
    "groups": "training",
    "plans": "training",
    "programs": "training",
    "runs": "training",
    "shards": "training",
    "snapshots": "training",
    "status": "training",
}
# Rooms whose files may import each other, as those of one package always may; elsewhere they meet
# through arguments.
OPEN = {"prompts", "models", "theory", "estimators", "training", "results", "claims", "harness"}
OPEN |= {"interop", "lm"}

HEAVY = {
    "xarray",
    "h5netcdf",
    "h5py",
    "pandas",
    "matplotlib",
    "diffrax",
    "equinox",
    "sklearn",
    "scipy.stats",
    "tyro",
    "jinja2",
    "rich.progress",
    "safetensors",
    "gguf",
    "tokenizers",
    "experiments",
}

MODULES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in (ROOT / "lsa_lab").rglob("*.py")
)


def room_of(module: str) -> str | None:
    """The room of lsa_lab.ROOM.file, or None for lsa_lab itself."""
    parts = module.split(".")
    return ANNEXES.get(parts[1], parts[1]) if len(parts) > 1 else None


def imported(source: str, module: str, package: bool = False) -> set[str]:
    """Every module of this repository that a file imports, inside functions as well."""
    here = module if package else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = here.split(".")[: len(here.split(".")) - node.level + 1]
                base = ".".join([*up, *filter(None, [base])])
            # `from lsa_lab import results` names a module, `from lsa_lab.results import save` not.
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= {name for name in names if name in MODULES} or {base}
    return {name for name in found if name.split(".")[0] in ("lsa_lab", "experiments", "tests")}


def faults(source: str, module: str, package: bool = False) -> list[str]:
    """The imports that do not go down, each as a sentence."""
    floor = {room: i for i, rooms in enumerate(FLOORS) for room in rooms}
    room = room_of(module)
    if room is not None and room not in floor:
        return [f"{module} is in no room of FLOORS"]
    said = []
    for target in sorted(imported(source, module, package)):
        there = room_of(target)
        if target.split(".")[0] != "lsa_lab":
            said.append(f"{module} imports {target}, which is no part of the library")
        elif there is None or target == module:
            continue
        elif there == room:
            if room not in OPEN and target.split(".")[:3] != module.split(".")[:3]:
                said.append(f"{module} imports {target}, its neighbour")
        elif room is None or floor.get(there, len(FLOORS)) >= floor[room]:
            said.append(f"{module} imports {target}, which is not on a lower floor")
    return said


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module):
    path = ROOT / module.replace(".", "/")
    package = path.is_dir()
    source = (path / "__init__.py" if package else path.with_suffix(".py")).read_text("utf-8")
    assert not faults(source, module, package)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("lsa_lab.models.moments", "from lsa_lab.training import fit"),
        ("lsa_lab.models.moments", "import lsa_lab.theory.optimum"),
        ("lsa_lab.models.moments", "from ..theory import optimum"),
        ("lsa_lab.tasks.tables", "from lsa_lab.tasks import linear"),
        ("lsa_lab.analyses.clipping.curves", "from lsa_lab.analyses import kernel"),
        ("lsa_lab.prompts", "def f():\n    from lsa_lab import results"),
        ("lsa_lab.training", "import experiments"),
        ("lsa_lab.utils", "import os"),
    ],
)
def test_a_wrong_import_is_found(module, line):
    assert len(faults(line, module)) == 1


def loaded(modules: list[str], packages: set[str]) -> str:
    """Those of some packages that importing modules loads, in a process of its own."""
    program = f"import importlib, sys\nfor name in {modules}:\n    importlib.import_module(name)\n"
    program += f"print(sorted(set(sys.modules) & {packages}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_library_loads_nothing_heavy():
    assert loaded([name for name in MODULES if room_of(name) != "harness"], HEAVY) == "[]"


def test_what_claims_and_the_program_read_of_language_models_leaves_jax_out():
    names = ("readings", "sentences", "sources", "templates")
    assert loaded([f"lsa_lab.lm.{name}" for name in names], {"jax"}) == "[]"
    assert loaded(["lsa_lab.lm.text"], {"jax"}) == "['jax']"
