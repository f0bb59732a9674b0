"""R runs in one program over all accelerators, or over all processes of ``jax.distributed``.

The axis of runs lies on a mesh of one axis. No device waits for another while it trains: only what
the host reads (records, states) is gathered.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from lsa_lab.models import moments
from lsa_lab.training import runs
from lsa_lab.training.plan import Plan, cached
from lsa_lab.training.recipe import Training

LOST = (
    "a process of this job was lost: start the same command again, which resumes from the last "
    "checkpoint"
)
Chunk = tuple[runs.State, Any]  # the states and the records of all runs, on the mesh


class LostProcessError(RuntimeError):
    """Another process of the same job has ended before this one."""


class MeshRuns:
    """Train R runs by one program on a mesh, filled up with copies of the last run."""

    def __init__(self, plan: Plan, state: runs.State):
        self._plan, self._mesh = plan, _make_mesh()
        self._inputs = self._place(plan.inputs[1:])
        self._advance = _make_program(plan.step, plan.impl, plan.chunk, self._mesh)
        self.first: Chunk = (self._place(state), None)  # before the first step

    def close(self) -> None:
        """Do nothing: no thread waits."""

    def advance(self, before: Chunk, first: int, alive: np.ndarray) -> Chunk:
        """Begin the chunk of steps from ``first`` on."""
        times = np.int32(first), np.int32(self._plan.training.steps)
        return self._advance(before[0], *self._inputs, *times)

    def wait(self, chunk: Chunk, timeout: float) -> bool:
        """Return whether a chunk comes to its end within ``timeout`` seconds. Several processes
        always wait for it: all of them must stop after the same one."""
        if jax.process_count() > 1:
            jax.block_until_ready(chunk)
        end = time.monotonic() + timeout
        while not all(x.is_ready() for x in jax.tree.leaves(chunk)):
            if time.monotonic() > end:
                return False
            time.sleep(1e-3)
        return True

    def records(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Return what the method of HostRuns does."""
        state, records = chunk
        finite, completed, records = self._gather((state.finite, state.steps_completed, records))
        return finite.all(1), completed, records

    def watched(self, chunk: Chunk) -> Any:
        """Return what is watched of the params after a chunk, arrays [R, ...]."""
        assert self._plan.watch is not None
        return self._gather(_share(self._plan.watch, self._mesh)(chunk[0].params))

    def state(self, chunk: Chunk) -> runs.State:
        """Return the states after a chunk in NumPy, [R, ...]."""
        return self._gather(chunk[0])

    def agree(self, stop: bool, due: bool) -> tuple[bool, bool]:
        """Return whether any process was asked to stop, and whether the first is due to save."""
        with _explain_loss():
            votes = multihost_utils.process_allgather(np.array([stop, due]))
        return bool(votes[:, 0].any()), bool(votes[0, 1])

    def _place(self, rows: Any) -> Any:
        """Return rows [R, ...] on the mesh, filled up to a multiple of its size."""
        size, last = self._mesh.size, self._plan.num_runs - 1
        index = np.minimum(np.arange(-(-(last + 1) // size) * size), last)
        sharding = NamedSharding(self._mesh, PartitionSpec("runs"))

        def place(x: Any) -> Array:
            rows = np.asarray(x)[index]
            return jax.make_array_from_callback(rows.shape, sharding, lambda part: rows[part])

        return jax.tree.map(place, rows)

    def _gather(self, tree: Any) -> Any:
        """Return the rows of all devices in NumPy, [R, ...], the same in every process."""
        with _explain_loss():
            rows = multihost_utils.process_allgather(tree, tiled=True)
        return jax.tree.map(lambda x: x[: self._plan.num_runs], rows)


def broadcast(content: bytes) -> bytes:
    """Return what the first process gives, in every process."""
    with _explain_loss():
        size = int(multihost_utils.broadcast_one_to_all(np.int32(len(content))))
        row = np.frombuffer(content[:size].ljust(size, b"\0"), np.uint8)
        return np.asarray(multihost_utils.broadcast_one_to_all(row)).tobytes()


@contextlib.contextmanager
def _explain_loss() -> Iterator[None]:
    """Raise LostProcessError where processes fail to exchange arrays."""
    try:
        yield
    except (RuntimeError, ValueError) as error:  # JaxRuntimeError is one or the other
        if jax.process_count() == 1:
            raise
        raise LostProcessError(LOST) from error


def _make_mesh() -> Mesh:
    """Return a mesh of all accelerators, or of one device of each process on hosts."""
    devices = jax.devices()
    if jax.default_backend() == "cpu":
        devices = list({d.process_index: d for d in reversed(devices)}.values())[::-1]
    return jax.make_mesh((len(devices),), ("runs",), (AxisType.Auto,), devices=devices)


@cached
def _make_program(training: Training, impl: str | None, chunk: int, mesh: Mesh) -> Callable:
    """Return the program (states, keys, own, first, steps) -> states and records [R, chunk]."""

    def advance(state: Any, keys: Any, own: Any, first: Any, steps: Any) -> tuple:
        def advance_one(row: tuple[runs.State, Array, Any]) -> tuple[runs.State, dict]:
            state, key, own = row
            return runs.advance(training, impl, chunk, state, key, own, first, steps)

        rows = state, keys, own
        if jax.default_backend() == "cpu" or len(keys) == 1:  # faster than all side by side
            return jax.lax.map(advance_one, rows)
        return jax.vmap(advance_one)(rows)

    return _share(advance, mesh, *[PartitionSpec("runs")] * 3, *[PartitionSpec()] * 2)


@cached
def _share(function: Callable, mesh: Mesh, *specs: PartitionSpec) -> Callable:
    """Return a program in which each device calls the function on its own rows."""
    rows = PartitionSpec("runs")
    layout: dict[str, Any] = dict(mesh=mesh, in_specs=specs or rows, out_specs=rows)
    shared = jax.shard_map(function, check_vma=False, **layout)
    return jax.jit(shared, compiler_options=moments.compiler_options())
