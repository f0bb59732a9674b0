"""fit: one loop for every model, one run or many, which can be killed and resumed.

On the cores of one host a run's bits depend on its own params, key and ``per_run`` leaves: not on
the other runs, on ``chunk``, on the number of cores, or on where it was interrupted.

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
from contextlib import closing, nullcontext
from threading import Event
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.arguments import check_at_least
from lsa_lab.files import lock_file
from lsa_lab.training import console, runs
from lsa_lab.training.host_runs import HostRuns
from lsa_lab.training.mesh_runs import MeshRuns
from lsa_lab.training.plan import Plan, make_plan
from lsa_lab.training.recipe import Files, Run, Training
from lsa_lab.training.snapshots import Checkpoint, Snapshot
from lsa_lab.training.status import classify_run

if TYPE_CHECKING:
    from rich.progress import Progress

_SAVE_EVERY = 5.0  # seconds between two checkpoints, at least
_PATIENCE = 2.0  # seconds that a request to stop waits for the end of a chunk


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

    Step t draws from fold_in(data_key, t), data_key a tagged child of ``key``: never split ``key``.
    A batch of keys [R] means R runs, and a leading axis R of every leaf of ``params`` and of
    ``per_run``. The cores of a host share the runs. Several accelerators, or the processes of a job
    (``training.cluster``), share them by a mesh, and every process returns all of them; the last
    bits are then those of this number of devices. ``watch`` (params) -> arrays is kept of each
    chunk; the chunks are equal if ``chunk`` divides the steps. A run that diverges keeps its last
    finite params. Ctrl-C waits for the end of a chunk, on one process for two seconds at most.
    """
    for argument, value in {"steps": training.steps, "chunk": chunk}.items():
        check_at_least(value, argument)
    if files is not None and not isinstance(files, Files):
        raise TypeError(f"files is {files!r}: give Files({files!r})")
    if isinstance(progress, bool):
        raise TypeError(f"progress is {progress}: give a bar, rich.progress.Progress(), or None")
    is_rule = isinstance(training.optimizer, optax.GradientTransformation)
    if per_run is None and not is_rule:
        raise TypeError(f"optimizer is {training.optimizer!r}: give one of optax, optax.adam(1e-3)")
    if not jnp.issubdtype(jnp.result_type(key), jax.dtypes.prng_key) and jnp.ndim(key) == 0:
        raise TypeError(f"key is {key!r}: give a random key, jax.random.key({key!r})")
    plan = make_plan(training, params, key, per_run, watch, chunk)
    if per_run is not None and (is_rule or not callable(training.optimizer)):
        raise TypeError("optimizer is no function: beside per_run it is own -> optax.adam(own)")
    snapshot = _resume(plan, files or Files(), progress)
    names = [runs.leaf_name(path) or "params" for path, _ in jax.tree.leaves_with_path(params)]
    state, losses = snapshot.state, snapshot.history["loss"]
    rows = zip(np.asarray(state.finite), np.asarray(state.steps_completed), losses, strict=True)
    status = tuple(classify_run(*row, names) for row in rows)
    results = state.params, snapshot.history
    is_one = jnp.ndim(key) == (runs.key_impl(key) is None)
    trained, history = jax.tree.map(lambda rows: rows[0], results) if is_one else results
    return Run(jax.tree.map(jnp.asarray, trained), history, status[0] if is_one else status)


def _resume(plan: Plan, files: Files, progress: "Progress | None") -> Snapshot:
    """Return all runs at their end, from wherever a checkpoint has them."""
    checkpoint, is_main = Checkpoint(plan, files), jax.process_index() == 0
    file = checkpoint.file if is_main else None
    with lock_file(file) if file else nullcontext():
        snapshot = checkpoint.resume()
        done = plan.training.steps if snapshot.is_finished() else int(snapshot.step)
        log, bar = (files.log, progress) if is_main else (None, None)
        report = console.make_reporter(plan, log, bar, done)
        return snapshot if snapshot.is_finished() else _train(plan, snapshot, report, checkpoint)


def _train(plan: Plan, snapshot: Snapshot, report: Callable, checkpoint: Checkpoint) -> Snapshot:
    """Train chunk after chunk, each while the records of the last one are read, until all steps are
    taken, all runs have diverged, or Ctrl-C asks to stop."""
    steps, history, step = plan.training.steps, snapshot.history, int(snapshot.step)
    alive = np.all(snapshot.state.finite, 1)
    last_saved, failed = time.monotonic(), False
    with console.interrupts_wait() as interrupt, closing(_begin(plan, snapshot)) as trained:
        chunk: Any = trained.first
        ahead = trained.advance(chunk, step, alive)
        began, stop = time.monotonic(), False
        while step < steps and alive.any() and not stop:
            first, end = step, min(step + plan.chunk, steps)
            after = trained.advance(ahead, end, alive) if end < steps else None
            if not _finish(trained, ahead, interrupt):
                break  # what is saved stands at the end of the chunk before
            chunk, step, ahead = ahead, end, after
            alive, completed, records = trained.records(chunk)
            taken = np.arange(first, step) < completed[:, None]
            for name, values in records.items():
                history[name][:, first:step] = np.where(taken, values[:, : step - first], np.nan)
            if plan.watch is not None:
                _keep(history["watch"], trained.watched(chunk), -(-step // plan.chunk))
            began, seconds = time.monotonic(), time.monotonic() - began
            report(step, history["loss"][alive, first:step], seconds)
            due = checkpoint.file is not None and began - last_saved > _SAVE_EVERY
            stop, save = trained.agree(interrupt.is_set(), due)
            if save and step < steps:
                try:
                    checkpoint.save(Snapshot(np.int64(step), trained.state(chunk), history))
                except OSError as error:  # the last checkpoint is whole, and the end saves again
                    if not failed:
                        name = plan.training.label or "training"
                        console.log(f"{name}: step {step} is not saved: {error}")
                    failed = True
                last_saved = time.monotonic()
        snapshot = Snapshot(np.int64(step), trained.state(chunk), history)
        checkpoint.save(snapshot)
        if stop and not interrupt.is_set():
            raise KeyboardInterrupt("another process of this job was asked to stop")
    return snapshot


def _begin(plan: Plan, snapshot: Snapshot) -> Any:
    """Return threads for the cores of one host, or else one program on a mesh of all devices."""
    alone = jax.process_count() == 1 and jax.default_backend() == "cpu"
    return (HostRuns if alone else MeshRuns)(plan, snapshot.state)


def _finish(trained: Any, chunk: Any, interrupt: Event) -> bool:
    """Return whether a chunk ends before a request to stop has waited for it for too long."""
    asked = None
    while not trained.wait(chunk, 0.2):
        if interrupt.is_set():
            asked = time.monotonic() if asked is None else asked
            if time.monotonic() - asked > _PATIENCE:
                return False
    return True


def _keep(history: Any, watched: Any, index: int) -> None:
    """Write what is watched from ``index`` on; later chunks overwrite it."""
    for rows, now in zip(jax.tree.leaves(history), jax.tree.leaves(watched), strict=True):
        rows[:, index:] = np.asarray(now)[:, None]
