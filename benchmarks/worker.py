"""A process that runs one form of a workload, and takes its turns: ``turns`` starts it.

    python -m benchmarks.worker ENVIRONMENT MODULE:BUILDER SIZES

ENVIRONMENT is "lab", that of the library's entry points, or "default", as the packages come. It
answers a line with one, in JSON.
"""

import importlib
import json
import os
import resource
import sys
import time


def main(environment: str, place: str, sizes: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints does not answer

    def answer(**what) -> None:
        print(json.dumps(what), file=answers, flush=True)

    if environment == "lab":
        from lsa_lab.lab import settings

        settings.configure()
    module, _, builder = place.partition(":")
    form = getattr(importlib.import_module(f"benchmarks.{module}"), builder)(**json.loads(sizes))
    versions = f"Python {sys.version.split()[0]}"
    if module != "waits":  # which imports no jax here
        from benchmarks import loops

        versions = loops.versions()
    answer(versions=versions, units=list(form.units))
    for line in sys.stdin:
        if line.strip() == "flops":
            answer(flops=form.flops())
            continue
        began = time.perf_counter()
        points = form.turn()
        answer(points=points, wall=time.perf_counter() - began, peak=peak())


def peak() -> float:
    """MiB that this process has held at most."""
    scale = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


if __name__ == "__main__":
    main(*sys.argv[1:])
