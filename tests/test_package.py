"""The package: heavy imports, examples, defaults, and the locks of a GPU."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = "xarray h5netcdf h5py pandas matplotlib diffrax equinox sklearn scipy.stats jinja2"
HEAVY = {*HEAVY.split(), "rich.progress", "safetensors", "gguf", "tokenizers", "experiments"}
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "lsa_lab").rglob("*.py"))
}


@pytest.fixture
def loaded(python):
    """Those of some packages that importing modules loads, in a process of its own."""

    def run(modules: list[str], packages: set[str]) -> str:
        program = f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\n"
        done = python(f"{program}print(sorted(set(sys.modules) & {packages}))")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_importing_the_library_loads_nothing_heavy(loaded):
    assert loaded([name for name in FILES if "lsa_lab.lab" not in name], HEAVY) == "[]"


def test_what_claims_and_the_program_read_of_language_models_leaves_jax_out(loaded):
    names = ("readings", "sentences", "sources")
    assert loaded([f"lsa_lab.lm.{name}" for name in names], {"jax"}) == "[]"


WITH_EXAMPLES = [name for name, path in FILES.items() if ">>> " in path.read_text("utf-8")]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_say(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


PACKAGES = ("theory", "models", "analyses", "selection", "estimators", "tasks")
CONVENTIONS = dict(
    noise_var=0.0, noise_std=0.0, weight_std=1.0, signal_norm_sq=1.0, sign=-1.0,
    keys="demonstrations", centred=False, per_head=False, reverse=False, whiten=False,
    max_swaps=1000, rtol=1e-10, atol=1e-10, norm=False, final_norm=False, biases=False,
    copies=0.0, flips=0.0, separation=0.0, closeness=1.0, shares=(1.0,), num_weights=1,
)  # fmt: skip


def list_defaults():
    """Yield the function or class, the name and the default of each parameter of PACKAGES."""
    for name in FILES:
        if name.split(".")[1:2] and name.split(".")[1] in PACKAGES:
            for key, value in vars(importlib.import_module(name)).items():
                if callable(value) and getattr(value, "__module__", None) == name:
                    for parameter in inspect.signature(value).parameters.values():
                        if parameter.default not in (inspect.Parameter.empty, None):
                            yield f"{name}.{key}", parameter.name, parameter.default


def test_a_parameter_that_is_not_said_means_the_same_everywhere():
    rows = list(list_defaults())
    others = [row for row in rows if CONVENTIONS.get(row[1], row[2]) != row[2]]
    assert others == []
    assert {name for _, name, _ in rows} >= CONVENTIONS.keys()
    # Sums over demonstrations are divided by their number, and correlations are not normalised.
    assert {where for where, name, default in rows if name == "normalise" and not default} == {
        "lsa_lab.estimators.descent.preprocessed_gradient_descent",
        "lsa_lab.estimators.descent.preprocessed_step_limit",
    }


VERSION = re.compile(r"^\S+==\S+", re.MULTILINE)


@pytest.mark.parametrize("lock", ["py311.txt", "py312.txt", "py313.txt", "py314.txt"])
def test_a_gpu_adds_its_packages_and_moves_no_version(lock):
    texts = ((ROOT / "requirements" / name).read_text("utf-8") for name in (lock, f"cuda-{lock}"))
    plain, cuda = (set(VERSION.findall(text)) for text in texts)
    assert plain < cuda
    added = {line.partition("==")[0] for line in cuda - plain}
    assert {"jax-cuda12-plugin", "jax-cuda12-pjrt"} < added
    assert all(name.startswith(("jax-cuda12-", "nvidia-")) for name in added)
