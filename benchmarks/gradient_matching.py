"""Gradient matching: seconds and peak memory of choosing 128 of 10 000 candidates.

The limit is 10 s on two cores and 2 GiB. Gradients without structure, and those of a linear model
at 64 checkpoints (many swaps), whole and projected to 512 numbers. On an idle machine:

    python -m benchmarks.gradient_matching
"""

import resource
import time

from lsa_lab.harness import process

process.configure()

import jax
import numpy as np

from lsa_lab.selection.gradient_matching import match
from lsa_lab.selection.projection import gap, project

M, P, SIZE, REPEATS = 10_000, 4_096, 128, 3


def peak() -> float:
    """GiB of this process so far (ru_maxrss is in KiB on Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def unstructured(rng):
    return rng.standard_normal((M, P), dtype=np.float32)


def linear(rng, d=64):
    """(w·x - y) x at P/d checkpoints w."""
    x = rng.standard_normal((M, d), dtype=np.float32)
    residuals = x @ rng.standard_normal((d, P // d), dtype=np.float32) - x[:, :1]
    return (residuals[:, :, None] * x[:, None]).reshape(M, P)


def show(name, choose):
    for repeat in range(REPEATS):
        began, busy = time.perf_counter(), time.process_time()
        chosen = jax.block_until_ready(choose())
        wall, busy = time.perf_counter() - began, time.process_time() - busy
        first = " (compiles)" if repeat == 0 else ""
        print(
            f"{name:32} {wall:6.2f} s, processor {busy:6.2f} s, peak {peak():.2f} GiB, "
            f"{len(chosen.history) - SIZE} swaps{first}"
        )
    print(f"{'':32} gap {chosen.objective:.4g}, at random {chosen.certificate.random:.4g}")
    return chosen


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    print(f"peak before any gradients {peak():.2f} GiB, {process.cores()} cores")
    for name, draw in (("unstructured", unstructured), ("linear model", linear)):
        gradients = draw(rng)
        show(f"{name}, float32", lambda g=gradients: match(g, SIZE))
        blocks, key = [gradients[i : i + 1000] for i in range(0, M, 1000)], jax.random.key(0)
        chosen = show(
            f"{name}, projected to 512", lambda b=blocks, k=key: match(project(b, k, 512), SIZE)
        )
        print(f"{'':32} of which in truth {gap(blocks, chosen.indices):.4g}")
