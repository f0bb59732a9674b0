"""Settings of the test process: strict, in float64, reproducible, and compiled once.

They are environment variables and configuration values that must be set before the first array.
"""

import gc
import itertools
import os
import subprocess
import sys
import textwrap
import threading
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Two batched factorisations at the same time can wait for each other for ever on two cores. And
# tests compile more than they compute: code that is not optimised is there sooner, and loops that
# MLIR does not emit in half the time (jaxlib 0.10, whose emitters can still be chosen). No program
# is cut into parts for more cores than there are tests to run.
flags = [
    "--xla_cpu_enable_concurrency_optimized_scheduler=false",
    "--xla_cpu_parallel_codegen_split_count=1",
]
# Newer ones have no such emitters, and without optimisation a scan of one step has other last bits.
if version("jaxlib").startswith("0.10."):
    flags += [
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_use_fusion_emitters=false",
    ]
os.environ.setdefault("XLA_FLAGS", " ".join(flags))
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import hypothesis
import jax
import pytest

try:
    from jax._src.interpreters import mlir
except ImportError:  # private, and only used to save time
    mlir = None

from lsa_lab.lab.settings import free_mappings

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
# Several clones may share one: its keys hold versions, flags and the processor's features.
CACHE = Path(os.environ.get("LSA_LAB_CACHE") or Path(__file__).resolve().parents[1] / ".cache")
jax.config.update("jax_compilation_cache_dir", str(CACHE.resolve() / "xla"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

# jax makes an MLIR context for every program, which takes 5 ms and stays with it, a megabyte. One
# serves all programs of a thread, but for those that jax compiles while it lowers another. What
# makes it is private to jax: without it tests take longer.
make_context, contexts = getattr(mlir, "make_ir_context", None), threading.local()


def context_of_thread():
    if mlir.ir.Context.current is not None:
        return make_context()
    if not hasattr(contexts, "shared"):
        contexts.shared = make_context()
    return contexts.shared


if make_context is not None:
    mlir.make_ir_context = context_of_thread

# Draws change the numbers inside a theorem's hypotheses; shapes come from parametrize, so that a
# test compiles once per shape. Compilation makes the first draw slow, hence no deadline. A person's
# run draws anew, CI draws the same every time, and soak looks for the rare draw that breaks a test.
hypothesis.settings.register_profile("local", max_examples=10, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=10, deadline=None, derandomize=True)
hypothesis.settings.register_profile("soak", max_examples=1000, deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

# Tracing frees its objects without the collector, which took a tenth of the time.
gc.set_threshold(50_000, 20, 20)


def pytest_addoption(parser):
    parser.addoption(
        "--every", action="store_true", help="all experiments and notebooks, slow tests"
    )


def pytest_configure(config):
    # A program that the other worker is just writing to the cache is compiled here too.
    unfinished = "ignore:Error reading persistent compilation cache entry"
    config.addinivalue_line("filterwarnings", unfinished)


# The files that take longest begin first, so that both processes are busy to the end.
LONGEST = (
    *("test_scripts.py", "test_fit.py", "test_card.py", "test_models.py", "test_identity.py"),
    *("test_estimators.py", "test_wishart_law.py"),
)


def pytest_collection_modifyitems(config, items):
    if not (config.option.every or any("::" in argument for argument in config.args)):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def pytest_collection_finish():
    """Exempt everything imported so far from garbage collection."""
    gc.collect()
    gc.freeze()


_ended = itertools.count(1)


@pytest.fixture(autouse=True)
def enough_mappings():
    yield
    if next(_ended) % 20 == 0:  # to count them takes as long as a small test
        free_mappings()


@pytest.fixture(scope="session")
def python():
    """Run a program in another Python process, which imports this repository; return its end."""
    root = Path(__file__).resolve().parents[1]
    folders = root, *(root / "tests" / name for name in ("", "experiments", "training"))

    def run(program, *arguments, cwd=root, timeout=120, **variables):
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))} | variables,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
