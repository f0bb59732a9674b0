"""Where the runs of a training stand after some step, and the checkpoint from which they resume."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab import checkpoints, programs, provenance, runs

if TYPE_CHECKING:
    from lsa_lab.training import Plan


class Snapshot(flax.struct.PyTreeNode):
    """What a checkpoint holds of R runs."""

    step: np.int64 | np.ndarray  # []  steps tried
    state: runs.State  # every leaf [R, ...]
    history: dict[str, Any]  # [R, steps], "watch" [R, C+1, ...]

    def done(self) -> int:
        """The steps already tried; all of them if every run has diverged."""
        alive = np.all(self.state.finite, 1).any()
        return int(self.step) if alive else self.history["loss"].shape[1]


def facts(plan: "Plan", identity: str) -> checkpoints.Facts:
    """What must agree for a checkpoint to be of this call."""
    steps, curriculum = plan.training.steps, plan.training.curriculum
    facts = checkpoints.Facts(identity=identity, steps=steps, width=plan.width, runs=plan.num_runs)
    if plan.watch is not None:
        facts["chunk"] = plan.chunk
    trees = dict(zip(("initial params", "keys", "per_run"), plan.inputs, strict=True))
    if curriculum is not None:
        stages = jax.jit(jax.vmap(curriculum))(jnp.arange(steps, dtype=jnp.int32))
        trees["curriculum"] = jax.device_get(stages)
    facts |= {name: checkpoints.digest(tree) for name, tree in trees.items()}
    return facts | _programs(plan) | provenance.arithmetic()


def _programs(plan: "Plan") -> checkpoints.Facts:
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


def resume(plan: "Plan", checkpoint: str | Path | None, facts: checkpoints.Facts) -> Snapshot:
    """What the checkpoint holds, or the runs before their first step."""
    params, _, per_run = plan.inputs

    @jax.jit
    def start(params: Any, per_run: Any) -> runs.State:
        return jax.lax.map(lambda own: runs.start(plan.training, *own), (params, per_run))

    history = _empty_history(plan)
    if not checkpoint or not Path(checkpoint).exists():
        return Snapshot(np.int64(0), jax.device_get(start(params, per_run)), history)
    like = Snapshot(np.int64(0), jax.eval_shape(start, params, per_run), history)
    snapshot = checkpoints.load(checkpoint, like, facts)
    return snapshot.replace(history=jax.tree.map(np.array, snapshot.history))  # to be written to


def _empty_history(plan: "Plan") -> dict[str, Any]:
    """NaN for every step; what is watched stands at its first value."""
    shape = (plan.num_runs, plan.training.steps)
    history: dict[str, Any] = {name: np.full(shape, np.nan) for name in ("loss", "grad_norm")}
    if plan.watch is not None:
        times = 1 + -(-plan.training.steps // plan.chunk)
        first = jax.tree.map(np.asarray, plan.watch(plan.inputs[0]))
        history["watch"] = jax.tree.map(lambda x: np.repeat(x[:, None], times, axis=1), first)
    return history
