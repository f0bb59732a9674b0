"""The state of all runs at some step, and the checkpoint that keeps it."""

from pathlib import Path
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.store import checkpoints, provenance
from lsa_lab.training import mesh_runs, programs, runs
from lsa_lab.training.plan import Plan, cached
from lsa_lab.training.recipe import Files, Training


class Snapshot(flax.struct.PyTreeNode):
    """R runs after some step."""

    step: np.int64 | np.ndarray  # []  steps tried
    state: runs.State  # every leaf [R, ...]
    history: dict[str, Any]  # [R, steps], "watch" [R, C+1, ...]

    def is_finished(self) -> bool:
        """Return whether no step is left to take."""
        alive = np.all(self.state.finite, 1).any()
        return not alive or int(self.step) == self.history["loss"].shape[1]


class Checkpoint:
    """The file of a plan's snapshots. The first process writes it, and reads it for all."""

    def __init__(self, plan: Plan, files: Files):
        self._plan, self.file = plan, Path(files.checkpoint) if files.checkpoint else None
        self._facts = _describe(plan, files.identity) if self.file else {}

    def resume(self) -> Snapshot:
        """Return what the file holds, or the runs before their first step."""
        if content := self._read():
            like = _begin(self._plan, jax.eval_shape)
            snapshot = checkpoints.restore(content, str(self.file), like, self._facts)
            history = jax.tree.map(np.array, snapshot.history)  # to be written to
            return snapshot.replace(history=history)
        return _begin(self._plan, lambda start, *inputs: jax.device_get(start(*inputs)))

    def save(self, snapshot: Snapshot) -> None:
        if self.file and jax.process_index() == 0:
            checkpoints.save(self.file, snapshot, self._facts)

    def _read(self) -> bytes:
        if self.file is None:
            return b""
        reads = jax.process_index() == 0 and self.file.exists()
        content = self.file.read_bytes() if reads else b""
        return content if jax.process_count() == 1 else mesh_runs.broadcast(content)


def _describe(plan: Plan, identity: str) -> checkpoints.Facts:
    """Return what must agree for a checkpoint to belong to this call."""
    steps, chunk = int(plan.training.steps), int(plan.chunk)  # JSON has no numbers of NumPy
    facts = checkpoints.Facts(identity=identity, steps=steps, runs=plan.num_runs)
    if plan.watch is not None:
        facts |= {"chunk": chunk, "watch": programs.digest(plan.watch, plan.inputs[0])}
    trees = dict(zip(("initial params", "keys", "per_run"), plan.inputs, strict=True))
    if plan.training.curriculum is not None:
        stages = jax.jit(jax.vmap(plan.training.curriculum))(jnp.arange(steps, dtype=jnp.int32))
        trees["curriculum"] = jax.device_get(stages)
    facts |= {name: checkpoints.digest(tree) for name, tree in trees.items()}
    return facts | _digest_programs(plan) | provenance.arithmetic()


def _digest_programs(plan: Plan) -> checkpoints.Facts:
    """Return digests of the traced loss, sampler and optimiser of one run."""
    training = plan.training
    params, keys, own = jax.tree.map(lambda rows: rows[0], plan.inputs)
    stage = () if training.curriculum is None else (training.curriculum(jnp.int32(0)),)

    def sample(key: Array, own: Any) -> Any:
        typed = key if plan.impl is None else jax.random.wrap_key_data(key, impl=plan.impl)
        return training.sample(typed, *stage, own)

    batch = jax.eval_shape(sample, keys, own)
    loss = jax.eval_shape(training.loss, params, batch, own)

    def update(params: Any, own: Any) -> Any:
        value = jnp.zeros(loss.shape, loss.dtype)
        with jax.numpy_dtype_promotion("standard"):
            rule = optax.with_extra_args_support(training.optimizer(own))
            extra = {"value": value, "grad": params, "value_fn": lambda params: value}
            return rule.update(params, rule.init(params), params, **extra)

    return {
        "loss": programs.digest(jax.value_and_grad(training.loss), params, batch, own),
        "sample": programs.digest(sample, keys, own),
        "optimizer": programs.digest(update, params, own),
    }


def _begin(plan: Plan, evaluate: Any) -> Snapshot:
    """Return the runs before their first step; with ``jax.eval_shape`` only shapes of states."""
    params, _, per_run = plan.inputs
    return Snapshot(
        np.int64(0), evaluate(_map_start(plan.step), params, per_run), _empty_history(plan)
    )


@cached
def _map_start(training: Training) -> Any:
    def start(params: Any, per_run: Any) -> runs.State:
        return jax.lax.map(lambda own: runs.start(training, *own), (params, per_run))

    return jax.jit(start)


def _empty_history(plan: Plan) -> dict[str, Any]:
    """Return NaN for every step; what is watched stands at its first value."""
    shape = (plan.num_runs, plan.training.steps)
    history: dict[str, Any] = {name: np.full(shape, np.nan) for name in ("loss", "grad_norm")}
    if plan.watch is not None:
        times = 1 + -(-plan.training.steps // plan.chunk)
        first = jax.tree.map(np.asarray, plan.watch(plan.inputs[0]))
        history["watch"] = jax.tree.map(lambda x: np.repeat(x[:, None], times, axis=1), first)
    return history
