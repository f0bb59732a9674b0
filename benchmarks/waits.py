"""What a person waits for: six waits and a move of the explorer, in processes that begin anew.

The first turn fills the caches of compiled programs that commands and tests keep; fits have none,
as in a script that imports the library. The sample of tests is one folder, and the figures are one
experiment without a trained model.
"""

import contextlib
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import Form, Spent, time_calls

ROOT = Path(__file__).resolve().parents[1]
NAMES = (
    *("import", "first fit", "second fit", "explorer's start"),
    *("explorer's move", "tests/tasks", "figures of flow_factors"),
)
_OURS = ("XLA_FLAGS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MOVES = 8  # slider moves of the explorer


def ours() -> Form:
    folder = Path(tempfile.mkdtemp())
    clean = {key: value for key, value in os.environ.items() if key not in _OURS}
    clean.pop("JAX_COMPILATION_CACHE_DIR", None)
    clean |= {"LSA_LAB_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT), "CI": "true"}

    def spend(*words: str) -> tuple[Spent, str]:
        """Seconds of a Python from its start to its end, and what it prints."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        ran = subprocess.run(
            [sys.executable, *words], cwd=ROOT, env=clean, capture_output=True, text=True
        )
        wall = time.perf_counter() - began
        if ran.returncode:
            raise RuntimeError(f"{' '.join(words)}: {ran.stdout[-1000:]}{ran.stderr[-1000:]}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        return (wall, processor), ran.stdout

    def turn() -> list[Spent]:
        shutil.rmtree(folder / "results", ignore_errors=True)
        run = ("-m", "lsa_lab.lab.command", "run", "flow_factors")
        figures = (*run, "--out", str(folder / "results"))
        tests = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/tasks")
        return [
            spend("-c", "from lsa_lab.training import fit")[0],
            *json.loads(spend("-m", "benchmarks.waits", "fits")[1]),
            *json.loads(spend("-m", "benchmarks.waits", "explorer")[1]),
            spend(*tests)[0],
            spend(*figures)[0],
        ]

    return Form(turn, [1] * len(NAMES), lambda: [None] * len(NAMES))


def fits() -> list[Spent]:
    """100 steps of W1 by ``fit`` after its import, and 100 more of a second key."""
    import jax
    import optax

    from benchmarks import cases, linear
    from lsa_lab.training import Training, fit

    sizes = cases.W1
    sample = linear.prompts_of(sizes["n"], sizes["d"])(sizes["batch"])
    training = Training(linear.loss, sample, optax.adam(1e-4), steps=100)
    params = linear.weights(sizes["layers"], sizes["d"])
    keys = iter(jax.block_until_ready(jax.random.split(jax.random.key(1))))
    return [time_calls(lambda: fit(training, params, next(keys)).params, 1, jax.block_until_ready)
            for _ in range(2)]  # fmt: skip


def explorer() -> list[Spent]:
    """Measure the time to import and draw the first panels, then the time of one slider move."""
    began, used = time.perf_counter(), time.process_time()
    from lsa_lab.lab import settings

    settings.configure()
    import jax

    from explorer.app import Controls, compute_views, draw_panels
    from lsa_lab.lab import plotting

    compute = jax.jit(compute_views)

    def show(scale: float) -> None:
        controls = Controls(scale=scale).as_arrays()
        for _, figure, _ in draw_panels(controls, compute(controls)):
            plotting.encode(figure, "png")

    show(0.5)
    start = time.perf_counter() - began, time.process_time() - used
    return [start, time_calls(lambda: show(1.0), MOVES, lambda x: x)]


if __name__ == "__main__":
    answers, chosen = sys.stdout, {"fits": fits, "explorer": explorer}[sys.argv[1]]
    with contextlib.redirect_stdout(io.StringIO()):
        spent = chosen()
    print(json.dumps(spent), file=answers)
