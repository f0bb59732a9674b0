"""fit: one loop for every model, one run or many, that can be killed and resumed.

A run's bits depend on its own params, key and ``per_run`` leaves, and on ``width``: not on the
other runs, on ``chunk``, on the number of devices, or on where it was interrupted.

    >>> training = Training(
    ...     loss=lambda w, batch: ((w - batch) ** 2).mean(),
    ...     sample=lambda key: 3 + jax.random.normal(key, (1000,)),
    ...     optimizer=optax.sgd(0.25),
    ...     steps=40,
    ... )
    >>> run = fit(training, jnp.zeros(()), jax.random.key(0))
    >>> print(run.params.round(1), run.history["loss"].shape, run.status)
    3.0 (40,) finished after 40 steps
    >>> five = fit(training, jnp.zeros(5), jax.random.split(jax.random.key(0), 5))
    >>> print(five.params.shape, five.history["loss"].shape)
    (5,) (5, 40)
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab import checkpoints, console, runs, safe_files, snapshots
from lsa_lab.arguments import check_at_least
from lsa_lab.snapshots import Snapshot
from lsa_lab.status import Status, status_of

if TYPE_CHECKING:
    from rich.progress import Progress

_SAVE_EVERY = 5.0  # seconds between two checkpoints, at least


@dataclass(frozen=True)
class Training:
    """What is minimised, on which batches, by which rule, and for how many steps.

    The functions are loss(params, batch) and sample(key) -> batch. If each run has leaves of its
    own (``per_run`` of ``fit``), they are loss(params, batch, own), sample(key, own) and
    optimizer(own) -> transformation. A ``curriculum``, an optax-style schedule step -> stage
    (``tasks.curricula``), makes it sample(key, stage) or sample(key, stage, own). Progress bar and
    log call the training by its ``label``.
    """

    loss: Callable
    sample: Callable
    optimizer: optax.GradientTransformation | Callable
    steps: int
    curriculum: Callable | None = None
    label: str = "training"


@dataclass(frozen=True)
class Files:
    """Where a training leaves its checkpoint and its log.

    With ``checkpoint`` the same call, repeated after any end, resumes to the same bits, and returns
    at once when nothing is left to do: the caller deletes the file. Another loss, sample or
    optimizer (the programs that they trace, and their constants), other arrays or versions are
    refused by name; ``identity`` is for whatever else must agree. ``log`` gains one JSON line a
    chunk; resuming repeats none of them, a start from nothing begins to count again.
    """

    checkpoint: str | Path | None = None
    log: str | Path | None = None
    identity: str = ""


@dataclass(frozen=True)
class Run:
    """The last finite params, a record of every step, and how it ended; leading axis R for many.

    ``history`` has "loss" and "grad_norm", both before the step's update, in float64 whatever the
    model's precision, NaN from the step on at which a run diverged; and "watch", if given, of
    the params before the first step and after every chunk (those of a diverged run stand still).
    """

    params: Any
    history: dict[str, Any]  # [steps] or [R, steps]; "watch" [C+1, ...] or [R, C+1, ...]
    status: Status | tuple[Status, ...]


def fit(
    training: Training,
    params: Any,
    key: Array,
    *,
    per_run: Any = None,
    watch: Callable | None = None,
    files: Files | None = None,
    width: int = 1,
    chunk: int = 100,
    progress: "Progress | None" = None,
) -> Run:
    """Minimise ``training.loss`` for ``training.steps`` steps, each on a fresh batch.

    Step t draws from fold_in(data_key, t), data_key a tagged child of ``key``: never split ``key``.
    A batch of keys [R] means R runs, and a leading axis R of every leaf of ``params`` and of
    ``per_run``; ``width`` runs are trained side by side. ``watch`` (params) -> arrays is kept of
    each chunk; the chunks are equal if ``chunk`` divides the steps. A run that diverges keeps its
    last finite params. Ctrl-C waits for the end of a chunk.
    """
    for argument, value in (("steps", training.steps), ("chunk", chunk), ("width", width)):
        check_at_least(value, argument)
    if not (
        isinstance(training.optimizer, optax.GradientTransformation) or callable(training.optimizer)
    ):
        raise TypeError(f"optimizer is {training.optimizer!r}: give one of optax, optax.adam(1e-3)")
    if not jnp.issubdtype(jnp.result_type(key), jax.dtypes.prng_key) and jnp.ndim(key) == 0:
        raise TypeError(f"key is {key!r}: give a random key, jax.random.key({key!r})")
    many = runs.count(params, key, per_run)
    files = files or Files()
    plan = _plan(training, (params, key, per_run), many, watch, width, chunk)
    with safe_files.owned(files.checkpoint) if files.checkpoint else nullcontext():
        snapshot = _resumed_and_trained(plan, files, progress, many or 1)
    names = [runs.name(path) or "params" for path, _ in jax.tree.leaves_with_path(params)]
    finite, taken = np.asarray(snapshot.state.finite), np.asarray(snapshot.state.taken)
    ends = zip(finite, taken, snapshot.history["loss"], strict=True)
    status = tuple(status_of(*end, names) for end in ends)
    trained = jax.tree.map(jnp.asarray, snapshot.state.params)
    if many:
        return Run(trained, snapshot.history, status)
    trained, history = jax.tree.map(lambda rows: rows[0], (trained, snapshot.history))
    return Run(trained, history, status[0])


def _resumed_and_trained(
    plan: "Plan", files: Files, progress: "Progress | None", many: int
) -> Snapshot:
    """The runs at their end, from wherever the checkpoint has them."""
    training = plan.training
    facts = snapshots.facts(plan, files.identity) if files.checkpoint else {}
    snapshot = snapshots.resume(plan, files.checkpoint, facts)
    done = snapshot.done()
    report = console.reporter(training.label, files.log, progress, many, training.steps, done)
    if done < training.steps:
        save = None
        if files.checkpoint:
            save = partial(checkpoints.save, files.checkpoint, facts=facts)
        snapshot = _train(plan, snapshot, report, save)
    return snapshot


@dataclass(frozen=True)
class Plan:
    """R runs as the loop needs them: functions that take ``per_run``, arrays with the axis R."""

    training: Training
    impl: str | None  # the kind of key that sample is given
    inputs: tuple  # params, keys and per_run in NumPy, keys untyped
    watch: Callable | None  # jitted, params of all runs -> arrays [R, ...]
    width: int
    chunk: int

    @property
    def num_runs(self) -> int:
        return len(self.inputs[1])


def _plan(
    training: Training,
    inputs: tuple,
    many: int | None,
    watch: Callable | None,
    width: int,
    chunk: int,
) -> Plan:
    params, key, per_run = inputs
    if per_run is None:
        loss, sample, optimizer = training.loss, training.sample, training.optimizer
        training = replace(
            training,
            loss=lambda params, batch, _: loss(params, batch),
            sample=lambda *arguments: sample(*arguments[:-1]),
            optimizer=lambda _: optimizer,
        )
        per_run = ()
    inputs = optax.tree.unwrap_random_key_data((params, key, per_run))
    return Plan(
        training=training,
        impl=runs.impl(key),
        inputs=jax.tree.map(lambda x: np.asarray(x if many else jnp.asarray(x)[None]), inputs),
        watch=None if watch is None else jax.jit(lambda params: jax.lax.map(watch, params)),
        width=width,
        chunk=-(-training.steps // -(-training.steps // chunk)),  # nearly equal: no step is wasted
    )


def _train(plan: Plan, snapshot: Snapshot, report: Callable, save: Callable | None) -> Snapshot:
    """Chunk after chunk, until all is over or Ctrl-C asks to stop."""
    steps, chunk = plan.training.steps, plan.chunk
    alive, history, step = np.all(snapshot.state.finite, 1), snapshot.history, int(snapshot.step)
    groups = runs.RunGroups(plan.num_runs, plan.width)
    advance = groups.program(partial(runs.step, plan.training, plan.impl), chunk)
    inputs = list(zip(*map(groups.spread, plan.inputs[1:]), strict=True))
    states = groups.spread(snapshot.state)
    due = time.monotonic() + _SAVE_EVERY
    with console.interrupts_wait() as interrupt:
        while step < steps and alive.any() and not interrupt.is_set():
            began, first, step = time.monotonic(), step, min(step + chunk, steps)
            records = {}
            for g, members in enumerate(groups.members):
                if alive[members].any():  # the calls return at once: the devices work in parallel
                    states[g], records[g] = advance(states[g], *inputs[g], np.int32(first))
            for g, record in records.items():
                members = groups.members[g]
                alive[members] = np.asarray(states[g].finite).all(-1)
                for name, values in jax.device_get(record).items():
                    history[name][members, first:step] = values[..., : step - first]
            if plan.watch is not None:
                watched = plan.watch(groups.rows([state.params for state in states]))
                _keep(history["watch"], watched, -(-step // chunk))
            report(step, history["loss"][alive, first:step], time.monotonic() - began)
            if save is not None and time.monotonic() > due:
                save(Snapshot(np.int64(step), groups.rows(states), history))
                due = time.monotonic() + _SAVE_EVERY
        snapshot = Snapshot(np.int64(step), groups.rows(states), history)
        if save is not None:
            save(snapshot)
    return snapshot


def _keep(history: Any, watched: Any, index: int) -> None:
    """Write what is watched from ``index`` on, for the next chunk to correct."""
    for rows, now in zip(jax.tree.leaves(history), jax.tree.leaves(watched), strict=True):
        rows[:, index:] = np.asarray(now)[:, None]
