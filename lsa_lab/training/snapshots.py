"""The state of all runs after some step, in memory and in a checkpoint."""

import hashlib
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import flax.struct
import jax
import numpy as np
from jax.experimental import multihost_utils

from lsa_lab.training import checkpoints
from lsa_lab.training.plan import Plan
from lsa_lab.training.steps import State


class Snapshot(flax.struct.PyTreeNode):
    """R runs after some step, in NumPy."""

    step: np.ndarray  # []  steps tried
    state: State  # every leaf [R, ...]
    history: dict[str, Any]  # [R, steps], "watch" [R, C+1, ...]

    def is_finished(self) -> bool:
        """Return whether no step is left to take."""
        return not self.state.finite.any() or int(self.step) == self.history["loss"].shape[1]


def resume(plan: Plan, path: str | Path | None, facts: checkpoints.Facts) -> Snapshot:
    """Return what a checkpoint holds, or all runs before their first step.

    Each process of a job reads the file, which lies on a disk that they share.
    """
    snapshot = Snapshot(np.array(0), plan.start(), _start_history(plan))
    if path is not None and Path(path).exists():
        snapshot = checkpoints.load(path, snapshot, facts)
    if jax.process_count() > 1:
        message = f"the processes of this job read different files {path}: use a shared disk"
        multihost_utils.assert_equal(snapshot.step, message)
    return snapshot


def extend(
    plan: Plan, snapshot: Snapshot, step: int, state: State, records: dict[str, np.ndarray]
) -> Snapshot:
    """Return the snapshot after a chunk of steps, which extends the history of ``snapshot``."""
    first, history = int(snapshot.step), snapshot.history
    completed = np.arange(first, step) < state.steps_completed[:, None]
    for name, values in records.items():
        history[name][:, first:step] = np.where(completed, values[:, : step - first], np.nan)
    if plan.watch is not None:  # later chunks overwrite the rows after this one
        index, watched = -(-step // plan.chunk), plan.observe(state.params)
        for rows, now in zip(*map(jax.tree.leaves, (history["watch"], watched)), strict=True):
            rows[:, index:] = now[:, None]
    return Snapshot(np.array(step), state, history)


def identify(plan: Plan) -> checkpoints.Facts:
    """Return what must agree for a checkpoint to belong to this call, and to resume to its bits."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    flags = [flag for flag in flags if "device_count" not in flag and "dump" not in flag]
    return {
        "steps": int(plan.training.steps),
        "chunk": int(plan.chunk),
        "initial params": checkpoints.hash_arrays(plan.params),
        "keys": checkpoints.hash_arrays(plan.keys),
        "per_run": checkpoints.hash_arrays(plan.values),
        "program": hashlib.sha256(plan.text.encode()).hexdigest(),
        "jax": version("jax"),
        "jaxlib": version("jaxlib"),
        "device": jax.devices()[0].device_kind,
        "XLA_FLAGS": " ".join(sorted(flags)),
    }


def _start_history(plan: Plan) -> dict[str, Any]:
    """Return NaN for every step; what is watched stands at its first value."""
    shape = (plan.num_runs, plan.training.steps)
    history: dict[str, Any] = {name: np.full(shape, np.nan) for name in ("loss", "grad_norm")}
    if plan.watch is not None:
        times, first = 1 + -(-plan.training.steps // plan.chunk), plan.observe(plan.params)
        history["watch"] = jax.tree.map(lambda x: np.repeat(x[:, None], times, axis=1), first)
    return history
