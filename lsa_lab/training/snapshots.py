"""Where the runs of a training stand after some step, and the checkpoint from which they resume."""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.models import sharding
from lsa_lab.store import checkpoints, processes, provenance
from lsa_lab.training import programs, runs
from lsa_lab.training.plan import Plan, remembered
from lsa_lab.training.recipe import Training


class Snapshot(flax.struct.PyTreeNode):
    """What a checkpoint holds of R runs."""

    step: np.int64 | np.ndarray  # []  steps tried
    state: runs.State  # every leaf [R, ...]
    history: dict[str, Any]  # [R, steps], "watch" [R, C+1, ...]

    def done(self) -> int:
        """The steps already tried; all of them if every run has diverged."""
        alive = np.all(self.state.finite, 1).any()
        return int(self.step) if alive else self.history["loss"].shape[1]


def facts(plan: Plan, identity: str) -> checkpoints.Facts:
    """What must agree for a checkpoint to be of this call."""
    # A whole number of NumPy's is one too, and JSON has none of them.
    steps, width, chunk = map(int, (plan.training.steps, plan.width, plan.chunk))
    curriculum = plan.training.curriculum
    facts = checkpoints.Facts(identity=identity, steps=steps, width=width, runs=plan.num_runs)
    if plan.watch is not None:
        facts["chunk"] = chunk
        facts["watch"] = programs.digest(plan.watch, plan.inputs[0])
    if plan.shards > 1:
        facts["shards"] = int(plan.shards)
    if plan.mesh is not None:
        facts["mesh"] = str(dict(plan.mesh.shape))
    trees = dict(zip(("initial params", "keys", "per_run"), plan.inputs, strict=True))
    if curriculum is not None:
        stages = jax.jit(jax.vmap(curriculum))(jnp.arange(steps, dtype=jnp.int32))
        trees["curriculum"] = jax.device_get(stages)
    facts |= {name: checkpoints.digest(tree) for name, tree in trees.items()}
    return facts | _programs(plan) | provenance.arithmetic()


def _programs(plan: Plan) -> checkpoints.Facts:
    """Digests of what is minimised, of what is drawn, and of the rule: of one run, traced."""
    training = plan.training
    params, keys, own = jax.tree.map(lambda rows: rows[0], plan.inputs)
    stage = () if training.curriculum is None else (training.curriculum(jnp.int32(0)),)

    def sample(key: Array, own: Any) -> Any:
        typed = key if plan.impl is None else jax.random.wrap_key_data(key, impl=plan.impl)
        return training.sample(typed, *stage, own)

    def update(params: Any, own: Any) -> Any:
        with jax.numpy_dtype_promotion("standard"):
            rule = optax.with_extra_args_support(training.optimizer(own))
            extra = {"value": jnp.zeros(()), "grad": params, "value_fn": lambda params: 0.0}
            return rule.update(params, rule.init(params), params, **extra)

    batch = jax.eval_shape(sample, keys, own)
    return {
        "loss": programs.digest(jax.value_and_grad(training.loss), params, batch, own),
        "sample": programs.digest(sample, keys, own),
        "optimizer": programs.digest(update, params, own),
    }


class Store:
    """Where the runs of a plan are kept: in its checkpoint, or where several processes share them,
    this one's share in a file of its own beside it, until all are joined. A process that no run
    falls to has none."""

    def __init__(self, plan: Plan, checkpoint: str | Path | None, identity: str):
        self.plan, self.share = plan, processes.share(plan.num_runs, plan.width)
        several = processes.count() > 1
        self._facts = facts(plan, identity) if checkpoint or several else {}
        self._whole = self.file = Path(checkpoint) if checkpoint else None
        self._facts_of_share = self._facts
        if several:
            rows = f"{self.share.start}-{self.share.stop}"
            self._facts_of_share = self._facts | {"share": rows}
            if self._whole:
                share = self._whole.with_name(f"{self._whole.name}.{rows}")
                self.file = share if len(self.share) else None

    def resume(self) -> Snapshot:
        """What the files hold of the share, or its runs before their first step."""
        part = self.plan.part(self.share)
        if self.file and self.file.exists():
            like = _start(part, jax.eval_shape)
            snapshot = checkpoints.load(self.file, like, self._facts_of_share)
        elif self._whole and self._whole.exists():
            whole = checkpoints.load(self._whole, _start(self.plan, jax.eval_shape), self._facts)
            rows = slice(self.share.start, self.share.stop)
            parts = jax.tree.map(lambda x: x[rows], (whole.state, whole.history))
            snapshot = Snapshot(whole.step, *parts)
        else:
            return _start(part, partial(_started, part))
        return snapshot.replace(history=jax.tree.map(np.array, snapshot.history))  # written to

    def save(self, snapshot: Snapshot) -> None:
        if self.file:
            checkpoints.save(self.file, snapshot, self._facts_of_share)

    def joined(self, snapshot: Snapshot) -> Snapshot:
        """All runs, when each process has ended its share."""
        if processes.count() == 1:
            return snapshot
        identity = hashlib.sha256(json.dumps(self._facts, sort_keys=True).encode()).hexdigest()
        label = f"{self.plan.training.label} {identity[:12]}"
        steps = np.full(len(self.share), snapshot.step)
        rows = (steps, snapshot.state, snapshot.history)
        steps, *parts = processes.gather(rows, self.plan.num_runs, self.plan.width, label)
        snapshot = Snapshot(steps.max(), *parts)
        if self._whole:
            if processes.leads():
                checkpoints.save(self._whole, snapshot, self._facts)
            processes.wait(f"{label} is written")
            if not self._whole.exists():  # in this process, which shares no disk with the first
                checkpoints.save(self._whole, snapshot, self._facts)
            if self.file:
                self.file.unlink(missing_ok=True)
        return snapshot


def _start(plan: Plan, evaluate: Callable) -> Snapshot:
    """The runs before their first step, or with eval_shape their shapes."""
    params, _, per_run = plan.inputs
    state = evaluate(_starts(plan.step), params, per_run)
    return Snapshot(np.int64(0), state, _empty_history(plan))


def _started(plan: Plan, start: Callable, params: Any, per_run: Any) -> Any:
    """The state in NumPy; on a mesh no device holds the whole of it."""
    if plan.mesh is not None:
        state = sharding.shardings(jax.eval_shape(start, params, per_run), plan.mesh)
        start = jax.jit(start, out_shardings=state)
    return jax.device_get(start(plan.place(params), per_run))


@remembered
def _starts(training: Training) -> Callable:
    def start(params: Any, per_run: Any) -> runs.State:
        return jax.lax.map(lambda own: runs.start(training, *own), (params, per_run))

    return jax.jit(start)


def _empty_history(plan: Plan) -> dict[str, Any]:
    """NaN for every step; what is watched stands at its first value."""
    shape = (plan.num_runs, plan.training.steps)
    history: dict[str, Any] = {name: np.full(shape, np.nan) for name in ("loss", "grad_norm")}
    if plan.watch is not None:
        times = 1 + -(-plan.training.steps // plan.chunk)
        first = jax.tree.map(np.asarray, plan.watch(plan.place(plan.inputs[0])))
        history["watch"] = jax.tree.map(lambda x: np.repeat(x[:, None], times, axis=1), first)
    return history
