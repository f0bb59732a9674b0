"""Imports go down, and heavy packages wait until they are used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Files and folders of lsa_lab by floor: each imports those of lower floors.
FLOORS = [
    {"prompts"},
    {"arguments", "variates"},
    {"store"},
    {"judging"},
    {"tasks", "estimators"},
    {"models", "theory"},
    {"training", "analyses", "selection", "interop", "lm"},
    *({f"harness.{name}"} for name in ("refusal", "draw", "run", "report", "cli")),
    {"claims", "results"},  # the names of before, for one version: nothing imports them
]
# Folders whose files know nothing of each other: they meet through arguments.
APART = {"tasks", "analyses", "selection"}

HEAVY = "xarray h5netcdf h5py pandas matplotlib diffrax equinox sklearn scipy.stats tyro jinja2"
HEAVY = {*HEAVY.split(), "rich.progress", "safetensors", "gguf", "tokenizers", "experiments"}

MODULES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in (ROOT / "lsa_lab").rglob("*.py")
)


def source_of(module: str) -> tuple[str, bool]:
    """The text of a module, and whether it is a package."""
    path = ROOT / module.replace(".", "/")
    package = path.is_dir()
    return (path / "__init__.py" if package else path.with_suffix(".py")).read_text(
        "utf-8"
    ), package


def room_of(module: str) -> str:
    """The file or folder of FLOORS that a module is or lies in; "" for packages above."""
    parts = module.split(".")[1:]
    if parts[:1] == ["harness"]:
        return ".".join(parts[:2]) if len(parts) > 1 else ""
    return "".join(parts[:1])


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
            # `from lsa_lab.store import results` names a module, an import from that file does not.
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= {name for name in names if name in MODULES} or {base}
    return {name for name in found if name.split(".")[0] in ("lsa_lab", "experiments", "tests")}


def faults(source: str, module: str, package: bool = False) -> list[str]:
    """The imports that do not go down, each as a sentence."""
    floor = {room: i for i, rooms in enumerate(FLOORS) for room in rooms} | {"": -1}
    room = room_of(module)
    if room not in floor:
        return [f"{module} is in no room of FLOORS"]
    said = []
    for target in sorted(imported(source, module, package) - {module}):
        other = room_of(target)
        if target.split(".")[0] != "lsa_lab":
            said.append(f"{module} imports {target}, which is no part of the library")
        elif room == other and room in APART:
            if target.split(".")[:3] != module.split(".")[:3]:
                said.append(f"{module} imports {target}, its neighbour")
        elif room != other and floor.get(other, len(FLOORS)) >= floor[room]:
            said.append(f"{module} imports {target}, which is not on a lower floor")
    return said


def circle(uses: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a ring, and those that rest on them, if there are any."""
    left = dict(uses)
    while free := [module for module, used in left.items() if not used & left.keys()]:
        left = {module: used for module, used in left.items() if module not in free}
    return sorted(left)


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module):
    source, package = source_of(module)
    assert not faults(source, module, package)


def test_no_import_closes_a_circle():
    """Those for types and those inside functions count too."""
    uses = {name: imported(source_of(name)[0], name) - {name} for name in MODULES}
    assert circle(uses) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": set()}) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("lsa_lab.models.moments", "from lsa_lab.training import fit"),
        ("lsa_lab.models.moments", "import lsa_lab.theory.optimum"),
        ("lsa_lab.models.moments", "from ..theory import optimum"),
        ("lsa_lab.tasks.tables", "from lsa_lab.tasks import linear"),
        ("lsa_lab.analyses.clipping.curves", "from lsa_lab.analyses import kernel"),
        ("lsa_lab.prompts", "def f():\n    from lsa_lab.store import results"),
        ("lsa_lab.store.results", "from lsa_lab.judging import claims"),
        ("lsa_lab.harness.draw.style", "from lsa_lab.harness.run import runner"),
        ("lsa_lab.harness.cli.jobs", "from lsa_lab import claims"),
        ("lsa_lab.training", "import experiments"),
        ("lsa_lab.utils", "import os"),
    ],
)
def test_a_wrong_import_is_found(module, line):
    assert len(faults(line, module)) == 1


@pytest.mark.parametrize(
    ("before", "now"), [("claims", "judging.claims"), ("results", "store.results")]
)
def test_the_public_names_of_before_still_lead_there(before, now):
    before, now = (importlib.import_module(f"lsa_lab.{name}") for name in (before, now))
    public = [name for name in vars(now) if not name.startswith("_")]
    assert [name for name in public if getattr(before, name) is not getattr(now, name)] == []


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
    assert (
        loaded([name for name in MODULES if not room_of(name).startswith("harness")], HEAVY) == "[]"
    )


def test_what_claims_and_the_program_read_of_language_models_leaves_jax_out():
    names = ("readings", "sentences", "sources", "templates")
    assert loaded([f"lsa_lab.lm.{name}" for name in names], {"jax"}) == "[]"
    assert loaded(["lsa_lab.lm.text"], {"jax"}) == "['jax']"
