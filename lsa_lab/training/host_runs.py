"""R runs on the cores of one host, by threads. A run's bits do not depend on the other runs."""

from collections.abc import Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from lsa_lab.models import moments
from lsa_lab.store.provenance import cores
from lsa_lab.training import runs
from lsa_lab.training.plan import Plan, cached
from lsa_lab.training.recipe import Training

# Whether programs run one after the other: of a host's batched factorisations, which share its
# threads, two can wait for each other for ever (jaxlib 0.10). The text of a program is long.
_serial: WeakKeyDictionary[jax.stages.Wrapped, bool] = WeakKeyDictionary()

Chunk = list[Future]  # of each run the state and the records after a chunk of steps


class HostRuns:
    """Train R runs by threads, which call one program, compiled for one run.

    A single program for all runs is slower on a host, and would change a run's last bits with their
    number. One device is enough: threads run as many programs on it as there are cores.
    """

    def __init__(self, plan: Plan, state: runs.State):
        self._plan = plan
        states, self._inputs = self._split(state), self._split(plan.inputs[1:])
        program = _make_program(plan.step, plan.impl, plan.chunk)
        lowered = program.lower(states[0], *self._inputs[0], np.int32(0), np.int32(0))
        # What is compiled ahead of time does not say where jax_debug_nans found a NaN.
        self._advance = program if jax.config.values["jax_debug_nans"] else lowered.compile()
        if program not in _serial:
            _serial[program] = "lapack_" in lowered.as_text()
        self._is_serial = _serial[program]
        self._pool = ThreadPoolExecutor(1 if self._is_serial else min(cores(), len(states)))
        self.first: Chunk = [Future() for _ in states]  # before the first step
        for future, row in zip(self.first, states, strict=True):
            future.set_result((row, None))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)  # unfinished chunks are not read

    def advance(self, before: Chunk, first: int, alive: np.ndarray) -> Chunk:
        """Begin the chunk of steps from ``first`` on, of the runs that are alive."""
        times = np.int32(first), np.int32(self._plan.training.steps)
        nothing = np.zeros(self._plan.chunk)

        def train(r: int) -> tuple[runs.State, Any]:
            state, _ = before[r].result()
            if not alive[r]:
                return state, dict.fromkeys(("loss", "grad_norm"), nothing)
            return jax.block_until_ready(self._advance(state, *self._inputs[r], *times))

        return [self._pool.submit(train, r) for r in range(self._plan.num_runs)]

    def wait(self, chunk: Chunk, timeout: float) -> bool:
        """Return whether a chunk comes to its end within ``timeout`` seconds."""
        return not futures.wait(chunk, timeout).not_done

    def records(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Return which runs are alive [R], their numbers of completed steps [R], and the records
        [R, chunk], which mean nothing from the first step on that is not completed."""
        states, records = zip(*(run.result() for run in chunk), strict=True)
        alive = np.array([np.asarray(state.finite).all() for state in states])
        return alive, np.array([state.steps_completed for state in states]), _stack(records)

    def watched(self, chunk: Chunk) -> Any:
        """Return what is watched of the params after a chunk, arrays [R, ...]."""
        assert self._plan.watch is not None
        watch, params = self._plan.watch, self.state(chunk).params
        return self._pool.submit(watch, params).result() if self._is_serial else watch(params)

    def state(self, chunk: Chunk) -> runs.State:
        """Return the states after a chunk as one of NumPy rows [R, ...]."""
        return _stack([run.result()[0] for run in chunk])

    def agree(self, stop: bool, due: bool) -> tuple[bool, bool]:
        """Return whether to stop and whether to save, for all processes: here there is one."""
        return stop, due

    def _split(self, rows: Any) -> list[Any]:
        """Return rows [R, ...] as one tree for each run, on the first device."""
        device = jax.local_devices()[0]
        trees = [jax.tree.map(lambda x, r=r: x[r], rows) for r in range(self._plan.num_runs)]
        return [jax.device_put(tree, device) for tree in trees]


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *rows: np.stack([np.asarray(row) for row in rows]), *trees)


@cached
def _make_program(training: Training, impl: str | None, chunk: int) -> jax.stages.Wrapped:
    """Return the program (state, key, own, first, steps) -> state and records [chunk]."""
    advance = partial(runs.advance, training, impl, chunk)
    return jax.jit(advance, compiler_options=moments.compiler_options())
