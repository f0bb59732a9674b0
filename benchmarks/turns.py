"""The forms of a workload take turns, each in a process of its own, on a machine that is quiet.

One turn of every form, then the next of each: whatever slows the machine for a while slows all of
them, and a ratio is that of two turns beside each other.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.cases import Case

ROOT = Path(__file__).resolve().parents[1]
TRIES = 2
PATIENCE = 400.0  # seconds for an answer
_OURS = ("XLA_FLAGS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Worker:
    """A process with one form."""

    def __init__(self, environment: str, place: str, sizes: dict, cache: str):
        clean = {key: value for key, value in os.environ.items() if key not in _OURS}
        if environment == "lab":
            clean["JAX_COMPILATION_CACHE_DIR"] = cache  # empty: the first turn compiles
        words = [sys.executable, "-m", "benchmarks.worker", environment, place, json.dumps(sizes)]
        self.complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=self.complaints, text=True, cwd=ROOT, env=clean
        )
        self.place = place

    def ready(self) -> "Worker":
        """The worker, once it has imported and built what it needs."""
        said = self._answer()
        self.versions: str = said["versions"]
        self.units: list[float] = said["units"]
        return self

    def ask(self, word: str) -> dict:
        print(word, file=self.process.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.complaints.close()

    def _answer(self) -> dict:
        watch = threading.Timer(PATIENCE, self.process.kill)
        watch.start()
        line = self.process.stdout.readline()
        watch.cancel()
        if line:
            return json.loads(line)
        self.complaints.seek(0)
        raise RuntimeError(f"{self.place} has ended: {self.complaints.read()[-2000:]}")


def measure(case: Case, attempt: Callable | None = None) -> dict:
    """The turns of a workload, measured again where others had used the machine, then refused."""
    attempt = attempt or once
    for _ in range(TRIES):
        result = attempt(case)
        share, busiest = result["others"]
        if share is None or share <= machine.QUIET:
            return result
    raise machine.LoadedError(
        f"{case.name} refused: other processes took {share:.0%} of the cores, {busiest} the most, "
        f"and at most {machine.QUIET:.0%} lets figures be compared; run it again on a quiet machine"
    )


def once(case: Case) -> dict:
    """Every turn of every form, whoever else uses the machine meanwhile."""
    before = machine.read()
    with workers(case) as present:
        firsts = {name: worker.ask("turn") for name, worker in present.items()}
        rounds = [
            {name: worker.ask("turn") for name, worker in present.items()}
            for _ in range(case.turns)
        ]
        after = machine.read()
        own = {os.getpid(), *(worker.process.pid for worker in present.values())}
        forms = {
            name: _form(worker, firsts[name], [turns[name] for turns in rounds])
            for name, worker in present.items()
        }
        counts = present["ours"].ask("flops")["flops"]
    others = machine.others(before, after, own) if before and after else (None, "")
    points = list(case.points)
    return {"points": points, "forms": forms, "flops": counts, "others": others}


@contextlib.contextmanager
def workers(case: Case) -> Iterator[dict[str, Worker]]:
    """A process for each form, and one for the machine's limits."""
    with contextlib.ExitStack() as stack:
        cache = stack.enter_context(tempfile.TemporaryDirectory())
        started = {}
        for name, place in {**case.forms, "limits": "loops:limits"}.items():
            environment = "lab" if name.startswith("ours") else "default"
            sizes = {} if name == "limits" else {**case.sizes, **case.own.get(name, {})}
            started[name] = Worker(environment, place, sizes, cache)
            stack.callback(started[name].close)
        yield {name: worker.ready() for name, worker in started.items()}


def _form(worker: Worker, first: dict, turns: list[dict]) -> dict:
    """Seconds of a unit [turns, points], and what else is known of a form.

    The first turn compiles: what it took longer than its units do later.
    """
    wall, processor = np.moveaxis(np.array([turn["points"] for turn in turns]), -1, 0)
    running = float(np.median(wall, axis=0) @ np.array(worker.units))
    return {
        "wall": wall.tolist(),
        "processor": processor.tolist(),
        "compile": max(0.0, first["wall"] - running),
        "peak": turns[-1]["peak"],
        "versions": worker.versions,
    }
