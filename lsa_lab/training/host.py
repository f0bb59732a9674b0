"""R runs on the cores of one host, by threads. A run's bits do not depend on the other runs."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from lsa_lab.training.plan import Plan
from lsa_lab.training.steps import State

Chunk = list[Future]  # the state and the records of each run after a chunk of steps


class HostRuns:
    """Train R runs by threads, which call one program, compiled for one run.

    A single program for all runs is slower on a host, and would change a run's last bits with their
    number. One device is enough: threads run as many programs on it as there are cores.
    """

    def __init__(self, plan: Plan):
        self._plan, self._program = plan, plan.compile()
        self._inputs = self._split((plan.keys, plan.values))
        # Two batched factorisations of a host, which share its threads, can wait for each other for
        # ever (jaxlib 0.10): such programs run one after the other.
        threads = 1 if "lapack_" in plan.text else min(count_cores(), plan.num_runs)
        self._pool = ThreadPoolExecutor(threads)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)  # unfinished chunks are not read

    def begin(self, state: State) -> Chunk:
        """Return the states before the first chunk, as if they were those after one."""
        chunk: Chunk = [Future() for _ in range(self._plan.num_runs)]
        for future, row in zip(chunk, self._split(state), strict=True):
            future.set_result((row, None))
        return chunk

    def advance(self, chunk: Chunk, first: int) -> Chunk:
        """Begin the chunk of steps from ``first`` on, after the chunk before."""
        times = np.int32(first), np.int32(self._plan.training.steps)
        nothing = dict.fromkeys(("loss", "grad_norm"), np.zeros(self._plan.chunk))

        def train(r: int) -> tuple[State, dict]:
            state, _ = chunk[r].result()
            if not state.finite:
                return state, nothing
            return jax.block_until_ready(self._program(state, *self._inputs[r], *times))

        return [self._pool.submit(train, r) for r in range(self._plan.num_runs)]

    def gather(self, chunk: Chunk) -> tuple[State, dict[str, np.ndarray]]:
        """Return the states [R, ...] and the records [R, chunk] after a chunk, in NumPy."""
        runs = [future.result() for future in chunk]
        return jax.tree.map(lambda *rows: np.stack([np.asarray(x) for x in rows]), *runs)

    def _split(self, rows: Any) -> list[Any]:
        """Return rows [R, ...] as one tree for each run, on the first device."""
        device = jax.local_devices()[0]
        trees = [jax.tree.map(lambda x, r=r: x[r], rows) for r in range(self._plan.num_runs)]
        return [jax.device_put(tree, device) for tree in trees]


def count_cores() -> int:
    """Return the number of cores that this process may use, which a container may limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
