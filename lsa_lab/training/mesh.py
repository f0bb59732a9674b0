"""R runs in one program over all accelerators, or over all processes of ``jax.distributed``.

The axis of runs lies on a mesh of one axis. No device waits for another while it trains: only what
the host reads is gathered, after each chunk.
"""

import functools
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
Chunk = tuple[State, Any]  # the states and the records of all runs, on the mesh


class MeshRuns:
    """Train R runs by one program on a mesh, filled up with copies of the last run.

    The methods are those of HostRuns. Every process gathers all runs.
    """

    def __init__(self, plan: Plan):
        self._plan, self._mesh = plan, _make_mesh()
        self._inputs = self._place((plan.keys, plan.values))

    def close(self) -> None:
        """Do nothing: no thread waits."""

    def begin(self, state: State) -> Chunk:
        return self._place(state), None

    def advance(self, chunk: Chunk, first: int) -> Chunk:
        times = np.int32(first), np.int32(self._plan.training.steps)
        return _advance()(self._plan.static, self._mesh, chunk[0], *self._inputs, *times)

    def gather(self, chunk: Chunk) -> tuple[State, dict[str, np.ndarray]]:
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


def _make_mesh() -> Mesh:
    """Return a mesh of all accelerators, or of one device of each process on hosts."""
    devices = jax.devices()
    if jax.default_backend() == "cpu":
        devices = list({d.process_index: d for d in reversed(devices)}.values())[::-1]
    return jax.make_mesh((len(devices),), ("runs",), (AxisType.Auto,), devices=devices)


@functools.cache
def _advance() -> jax.stages.Wrapped:
    options = moments.compiler_options()
    return jax.jit(_advance_all, static_argnums=(0, 1), compiler_options=options)


def _advance_all(
    static: tuple[Training, str | None, int],
    mesh: Mesh,
    states: Any,
    keys: Any,
    values: Any,
    first: Any,
    last: Any,
) -> Chunk:
    """Return states and records [R, chunk] after a chunk; each device trains its own runs."""

    def advance(states: Any, keys: Any, values: Any, first: Any, last: Any) -> Chunk:
        def advance_one(row: Any) -> tuple[State, dict]:
            state, key, value = row
            return steps.advance(*static, state, key, value, first, last)

        rows = states, keys, values
        if jax.default_backend() == "cpu" or len(keys) == 1:  # faster than vmap there
            return jax.lax.map(advance_one, rows)
        return jax.vmap(advance_one)(rows)

    specs = (*[_RUNS] * 3, *[_ALL] * 2)
    shared = jax.shard_map(advance, mesh=mesh, in_specs=specs, out_specs=_RUNS, check_vma=False)
    return shared(states, keys, values, first, last)
