"""fit: one loop for every model, one run or many, which can be killed and resumed.

On the cores of one host a run's bits depend on its own params, key and ``per_run`` leaves: not on
the other runs, on ``chunk``, on the number of cores, or on where it was interrupted.

    >>> import optax
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

import json
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.files import lock_file
from lsa_lab.training import checkpoints, snapshots
from lsa_lab.training.executors import HostRuns, MeshRuns
from lsa_lab.training.plan import Plan, make_plan
from lsa_lab.training.recipe import Files, Run, Training
from lsa_lab.training.snapshots import Snapshot
from lsa_lab.training.status import classify_run

if TYPE_CHECKING:
    from rich.progress import Progress

_SAVE_EVERY = 5.0  # seconds between two checkpoints, at least


def fit(
    training: Training,
    params: Any,
    key: Array,
    *,
    per_run: Any = None,
    watch: Callable | None = None,
    files: Files | None = None,
    chunk: int = 100,
    progress: "Progress | None" = None,
) -> Run:
    """Minimise ``training.loss`` for ``training.steps`` steps, each on a fresh batch.

    The cores of a host share the runs. Several accelerators, or the processes of a job
    (``training.cluster``), share them by a mesh, and every process returns all of them; the last
    bits then depend on the number of devices. Ctrl-C saves the last complete chunk.

    Args:
        params: floats of one model, or of R runs with a leading axis R on every leaf.
        key: one random key, or R of them for R runs. Step t draws from fold_in(data_key, t), where
            data_key is a tagged child of ``key``: never split ``key``.
        per_run: values of each run [R, ...], which loss, sampler and optimiser are given.
        watch: params -> arrays, which history keeps of the first params and of every chunk.
        files: a checkpoint to resume from, and a log.
        chunk: steps between two looks of the host; the chunks are equal if it divides the steps.
        progress: a bar of ``rich``.

    Returns:
        A Run. A run that diverges keeps its last finite params.

    Raises:
        TypeError, ValueError: an argument has a wrong kind or shape; the checkpoint is damaged, or
            belongs to another call.
        FileLockedError: another process trains with the same checkpoint.
    """
    if files is not None and not isinstance(files, Files):
        raise TypeError(f"files is {files!r}: give Files({files!r})")
    if isinstance(progress, bool):
        raise TypeError(f"progress is {progress}: give a bar, rich.progress.Progress(), or None")
    plan, files = make_plan(training, params, key, per_run, watch, chunk), files or Files()
    path, is_main = files.checkpoint, jax.process_index() == 0
    with lock_file(path) if path and is_main else nullcontext():
        facts = snapshots.identify(plan) if path else {}
        snapshot = snapshots.resume(plan, path, facts)
        log, bar = (files.log, progress) if is_main else (None, None)
        report = _make_reporter(plan, log, bar, snapshot)

        def save(snapshot: Snapshot) -> None:
            if path and is_main:
                checkpoints.save(path, snapshot, facts)

        if not snapshot.is_finished():
            snapshot = _train(plan, snapshot, report, save)
    state, history = snapshot.state, snapshot.history
    rows = zip(state.finite, state.steps_completed, history["loss"], strict=True)
    status = tuple(classify_run(*row) for row in rows)
    trained = jax.tree.map(jnp.asarray, state.params)
    if not plan.is_single:
        return Run(trained, history, status)
    trained, history = jax.tree.map(lambda rows: rows[0], (trained, history))
    return Run(trained, history, status[0])


def _train(plan: Plan, snapshot: Snapshot, report: Callable, save: Callable) -> Snapshot:
    """Train chunk after chunk, each while the records of the last one are read, until all steps are
    taken or all runs have diverged; save every few seconds and at any end."""
    steps, step = plan.training.steps, int(snapshot.step)
    is_host = jax.process_count() == 1 and jax.default_backend() == "cpu"
    executor: Any = HostRuns(plan) if is_host else MeshRuns(plan)
    try:
        with closing(executor):
            ahead = executor.advance(executor.begin(snapshot.state), step)
            began = last_saved = time.monotonic()
            while not snapshot.is_finished():
                chunk, first, step = ahead, step, min(step + plan.chunk, steps)
                ahead = executor.advance(chunk, step) if step < steps else None
                state, records = executor.gather(chunk)
                snapshot = snapshots.extend(plan, snapshot, step, state, records)
                began, seconds = time.monotonic(), time.monotonic() - began
                report(step, snapshot.history["loss"][state.finite, first:step], seconds)
                if began - last_saved > _SAVE_EVERY:
                    save(snapshot)
                    last_saved = time.monotonic()
    finally:  # after Ctrl-C, too
        save(snapshot)
    return snapshot


def _make_reporter(
    plan: Plan, log: str | Path | None, progress: "Progress | None", snapshot: Snapshot
) -> Callable:
    """Return a function that reports each chunk after ``snapshot`` to the bar and to the log.

    The loss is the median over the runs that have not diverged of the mean over the chunk.
    """
    label, steps, runs = plan.training.label, plan.training.steps, plan.num_runs
    name, done = label or "training", steps if snapshot.is_finished() else int(snapshot.step)
    if log is not None:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
    if progress is not None:
        task = progress.add_task(name, total=runs * steps, completed=runs * done, step=done)

    def report(step: int, losses: np.ndarray, seconds: float) -> None:  # losses [runs alive, chunk]
        alive = len(losses)
        loss = float(np.median(losses.mean(1))) if alive else None
        if log is not None:
            line = {"label": label, "step": step, "loss": loss, "diverged": runs - alive}
            with open(log, "a") as file:
                file.write(json.dumps(line | {"seconds": round(seconds, 6)}) + "\n")
        if progress is not None:
            text = f"{name}: loss {loss:.4g}" if alive else f"{name}: no loss"
            text += f", {runs - alive} diverged" if alive < runs else ""
            progress.update(task, completed=runs * (step if alive else steps), description=text)

    return report
