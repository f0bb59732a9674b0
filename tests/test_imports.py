"""Heavy packages wait until they are used, and public names of before lead to those of today."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = "xarray h5netcdf h5py pandas matplotlib diffrax equinox sklearn scipy.stats jinja2"
HEAVY = {*HEAVY.split(), "rich.progress", "safetensors", "gguf", "tokenizers", "experiments"}
MODULES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in (ROOT / "lsa_lab").rglob("*.py")
)


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
    assert loaded([name for name in MODULES if "harness" not in name], HEAVY) == "[]"


def test_what_claims_and_the_program_read_of_language_models_leaves_jax_out():
    names = ("readings", "sentences", "sources", "templates")
    assert loaded([f"lsa_lab.lm.{name}" for name in names], {"jax"}) == "[]"
    assert loaded(["lsa_lab.lm.text"], {"jax"}) == "['jax']"


@pytest.mark.parametrize(
    ("before", "now"), [("claims", "judging.claims"), ("results", "store.results")]
)
def test_the_public_names_of_before_still_lead_there(before, now):
    before, now = (importlib.import_module(f"lsa_lab.{name}") for name in (before, now))
    public = [name for name in vars(now) if not name.startswith("_")]
    assert [name for name in public if getattr(before, name) is not getattr(now, name)] == []
