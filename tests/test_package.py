"""The package: heavy imports, examples, defaults, and the locks of a GPU."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = "xarray h5netcdf h5py pandas matplotlib diffrax equinox sklearn scipy.stats jinja2"
HEAVY = {*HEAVY.split(), "rich.progress", "safetensors", "gguf", "tokenizers", "experiments"}
MODULES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in (ROOT / "lsa_lab").rglob("*.py")
)


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
    apart = "lsa_lab.lab"
    assert loaded([name for name in MODULES if not name.startswith(apart)], HEAVY) == "[]"


def test_what_claims_and_the_program_read_of_language_models_leaves_jax_out(loaded):
    names = ("readings", "sentences", "sources")
    assert loaded([f"lsa_lab.lm.{name}" for name in names], {"jax"}) == "[]"


FILES = [path for path in (ROOT / "lsa_lab").rglob("*.py") if ">>> " in path.read_text("utf-8")]
WITH_EXAMPLES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in FILES
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_say(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


ROOMS = ("theory", "models", "analyses", "selection", "estimators", "tasks")
CONVENTIONS = dict(
    noise_var=0.0, noise_std=0.0, weight_std=1.0, signal_norm_sq=1.0, sign=-1.0,
    keys="demonstrations", centred=False, per_head=False, reverse=False, whiten=False,
    max_swaps=1000, rtol=1e-10, atol=1e-10, norm=False, final_norm=False, biases=False,
    copies=0.0, flips=0.0, separation=0.0, closeness=1.0, shares=(1.0,), num_weights=1,
)  # fmt: skip


def defaults():
    """Every public function and class of the rooms, with what each parameter is if not said."""
    for room in ROOMS:
        package = importlib.import_module(f"lsa_lab.{room}")
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                if callable(value) and getattr(value, "__module__", None) == info.name:
                    for parameter in inspect.signature(value).parameters.values():
                        if parameter.default not in (inspect.Parameter.empty, None):
                            yield f"{info.name}.{name}", parameter.name, parameter.default


def test_a_parameter_that_is_not_said_means_the_same_everywhere():
    rows = list(defaults())
    others = [row for row in rows if CONVENTIONS.get(row[1], row[2]) != row[2]]
    assert others == []
    assert {name for _, name, _ in rows} >= CONVENTIONS.keys()
    # Sums over demonstrations are divided by their number, and correlations are not normalised.
    assert {where for where, name, default in rows if name == "normalise" and not default} == {
        "lsa_lab.estimators.descent.preprocessed_gradient_descent",
        "lsa_lab.estimators.descent.preprocessed_step_limit",
    }


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
