"""The two ways to train R runs: by threads on one host, or by one program on a mesh."""

import functools
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from lsa_lab.models import moments
from lsa_lab.training import steps
from lsa_lab.training.plan import Plan
from lsa_lab.training.recipe import Training
from lsa_lab.training.steps import State

_RUNS, _ALL = PartitionSpec("runs"), PartitionSpec()


class HostRuns:
    """Train R runs by threads, which call one program, compiled for one run.

    A single program for all runs is slower on a host, and would change a run's last bits with their
    number. One device is enough: threads run as many programs on it as there are cores. A chunk of
    steps is a list of Futures, the state and the records of each run after it.
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

    def begin(self, state: State) -> list[Future]:
        """Return the states before the first chunk, as if they were those after one."""
        return [self._pool.submit(tuple, (row, None)) for row in self._split(state)]

    def advance(self, chunk: list[Future], first: int) -> list[Future]:
        """Begin the chunk of steps from ``first`` on, after the chunk before."""
        times = np.int32(first), np.int32(self._plan.training.steps)
        nothing = dict.fromkeys(("loss", "grad_norm"), np.zeros(self._plan.chunk))

        def train(r: int) -> tuple[State, dict]:
            state, _ = chunk[r].result()
            if not state.finite:
                return state, nothing
            return jax.block_until_ready(self._program(state, *self._inputs[r], *times))

        return [self._pool.submit(train, r) for r in range(self._plan.num_runs)]

    def gather(self, chunk: list[Future]) -> tuple[State, dict[str, np.ndarray]]:
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


class MeshRuns:
    """Train R runs by one program, with the axis of runs on a mesh of all accelerators, or of all
    processes of ``jax.distributed``.

    The axis is filled up with copies of the last run. The methods are those of HostRuns, with
    arrays on the mesh in the place of Futures. No device waits for another while it trains: only
    what the host reads is gathered, after each chunk, and every process gathers all runs.
    """

    def __init__(self, plan: Plan):
        self._plan, self._mesh = plan, make_mesh()
        self._inputs = self._place((plan.keys, plan.values))

    def close(self) -> None:
        """Do nothing: no thread waits."""

    def begin(self, state: State) -> tuple[State, Any]:
        return self._place(state), None

    def advance(self, chunk: tuple[State, Any], first: int) -> tuple[State, Any]:
        times = np.int32(first), np.int32(self._plan.training.steps)
        return _advance(self._plan.static, self._mesh, chunk[0], *self._inputs, *times)

    def gather(self, chunk: tuple[State, Any]) -> tuple[State, dict[str, np.ndarray]]:
        rows = multihost_utils.process_allgather(chunk, tiled=True)
        return jax.tree.map(lambda x: np.asarray(x)[: self._plan.num_runs], rows)

    def _place(self, rows: Any) -> Any:
        """Return rows [R, ...] on the mesh, filled up to a multiple of its size."""
        size, last = self._mesh.size, self._plan.num_runs - 1
        index = np.minimum(np.arange(-(-(last + 1) // size) * size), last)
        sharding = NamedSharding(self._mesh, _RUNS)

        def place(x: Any) -> Array:
            rows = np.asarray(x)[index]
            return jax.make_array_from_callback(rows.shape, sharding, lambda part: rows[part])

        return jax.tree.map(place, rows)


def make_mesh() -> Mesh:
    """Return a mesh of all accelerators, or of one device of each process on hosts."""
    devices = jax.devices()
    if jax.default_backend() == "cpu":
        devices = list({d.process_index: d for d in reversed(devices)}.values())[::-1]
    return jax.make_mesh((len(devices),), ("runs",), (AxisType.Auto,), devices=devices)


@functools.partial(moments.compiled, static_argnums=(0, 1))
def _advance(static: tuple[Training, str | None, int], mesh: Mesh, *arrays: Any) -> Any:
    """Return states and records [R, chunk] after a chunk; each device trains its own runs."""

    def advance(states: Any, keys: Any, values: Any, first: Any, last: Any) -> Any:
        def advance_one(row: tuple[State, Array, tuple]) -> tuple[State, dict]:
            state, key, value = row
            return steps.advance(*static, state, key, value, first, last)

        rows = states, keys, values
        if jax.default_backend() == "cpu" or len(keys) == 1:  # faster than vmap there
            return jax.lax.map(advance_one, rows)
        return jax.vmap(advance_one)(rows)

    specs = (*[_RUNS] * 3, *[_ALL] * 2)
    shared = jax.shard_map(advance, mesh=mesh, in_specs=specs, out_specs=_RUNS, check_vma=False)
    return shared(*arrays)
