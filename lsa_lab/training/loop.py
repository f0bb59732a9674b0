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
from concurrent import futures
from concurrent.futures import Future
from contextlib import nullcontext
from threading import Event
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.sharding import Mesh

from lsa_lab.arguments import check_at_least
from lsa_lab.store import processes, safe_files
from lsa_lab.training import console, runs, snapshots
from lsa_lab.training.groups import RunGroups
from lsa_lab.training.plan import Plan, plan_of
from lsa_lab.training.recipe import Files, Run, Training
from lsa_lab.training.snapshots import Snapshot
from lsa_lab.training.status import status_of

if TYPE_CHECKING:
    from rich.progress import Progress

_SAVE_EVERY = 5.0  # seconds between two checkpoints, at least
_PATIENCE = 2.0  # seconds that whoever asks to stop waits for the end of a chunk


def fit(
    training: Training,
    params: Any,
    key: Array,
    *,
    per_run: Any = None,
    watch: Callable | None = None,
    files: Files | None = None,
    width: int | None = None,
    shards: int = 1,
    mesh: Mesh | None = None,
    chunk: int = 100,
    progress: "Progress | None" = None,
) -> Run:
    """Minimise ``training.loss`` for ``training.steps`` steps, each on a fresh batch.

    Step t draws from fold_in(data_key, t), data_key a tagged child of ``key``: never split ``key``.
    A batch of keys [R] means R runs, and a leading axis R of every leaf of ``params`` and of
    ``per_run``; ``width`` runs are trained side by side: one on CPU, on accelerators all that fall
    to one of them. With ``shards`` S, a step's loss and gradient are the means over S batches,
    which the devices share; their keys are fold_in(fold_in(data_key, t), s). The devices of a
    ``mesh`` (``models.sharding``) share the weights of each run and what the optimiser keeps of
    them, one group after the other; a loss or sample that shares its batch does so by
    ``sharding.share``, and the last bits are those of a mesh of this shape. ``watch`` (params) ->
    arrays is kept of each chunk; the chunks are equal if ``chunk`` divides the steps. A run that
    diverges keeps its last finite params. Ctrl-C waits for the end of a chunk, or for two seconds.
    Several processes (``store.processes``) share the runs, and all of them return the same.
    """
    numbers = {"steps": training.steps, "chunk": chunk, "width": width, "shards": shards}
    for argument, value in numbers.items():
        if value is not None:
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
    if mesh is not None and not isinstance(mesh, Mesh):
        raise TypeError(f"mesh is {mesh!r}: give one of devices, models.sharding.mesh()")
    if mesh is not None and (shards > 1 or mesh.is_multi_process):
        what = f"shards is {shards}" if shards > 1 else "the mesh has devices of other processes"
        raise ValueError(f"{what}: a mesh is one process's, and shares a batch by sharding.share")
    plan = plan_of(training, (params, key, per_run), watch, width, chunk, shards, mesh)
    if per_run is not None and (is_rule or not callable(training.optimizer)):
        raise TypeError("optimizer is no function: beside per_run it is own -> optax.adam(own)")
    snapshot = _trained(plan, files or Files(), progress)
    names = [runs.name(path) or "params" for path, _ in jax.tree.leaves_with_path(params)]
    finite, taken = np.asarray(snapshot.state.finite), np.asarray(snapshot.state.taken)
    ends = zip(finite, taken, snapshot.history["loss"], strict=True)
    status = tuple(status_of(*end, names) for end in ends)
    trained, history = snapshot.state.params, snapshot.history
    is_one = jnp.ndim(key) == (runs.impl(key) is None)
    if is_one:
        trained, history = jax.tree.map(lambda rows: rows[0], (trained, history))
    trained = jax.tree.map(jnp.asarray, plan.place(trained))
    return Run(trained, history, status[0] if is_one else status)


def _trained(plan: Plan, files: Files, progress: "Progress | None") -> Snapshot:
    """All runs at their end: this process's share, from wherever a checkpoint has it, and the
    shares of the others."""
    store = snapshots.Store(plan, files.checkpoint, files.identity)
    part = plan.part(store.share)
    with safe_files.owned(store.file) if store.file else nullcontext():
        snapshot = store.resume()
        done, leads = snapshot.done(), processes.leads()
        log, bar = (files.log, progress) if leads else (None, None)
        steps, label = plan.training.steps, plan.training.label
        report = console.reporter(label, log, bar, part.num_runs, steps, done)
        if done < steps:
            snapshot = _train(part, snapshot, report, store.save if store.file else None)
        return store.joined(snapshot)


def _train(plan: Plan, snapshot: Snapshot, report: Callable, save: Callable | None) -> Snapshot:
    """Chunk after chunk, each while the last one's records are read, until all is over or Ctrl-C
    asks to stop."""
    steps, history, step = plan.training.steps, snapshot.history, int(snapshot.step)
    alive = np.all(snapshot.state.finite, 1)
    due, failed = time.monotonic() + _SAVE_EVERY, False
    with console.interrupts_wait() as interrupt, RunGroups(plan) as groups:
        chunk = groups.start(snapshot.state)
        ahead = groups.advance(chunk, step, alive)
        began = time.monotonic()
        while step < steps and alive.any() and not interrupt.is_set():
            first, end = step, min(step + plan.chunk, steps)
            after = groups.advance(ahead, end, alive) if end < steps else []
            if not _ends(ahead, interrupt):
                break  # what is saved stands at the end of the chunk before
            chunk, step, ahead = ahead, end, after
            for members, group in zip(groups.members, chunk, strict=True):
                state, record = group.result()
                alive[members] = np.asarray(state.finite).all(-1)
                for name, values in jax.device_get(record).items():
                    history[name][members, first:step] = values[..., : step - first]
            if plan.watch is not None:
                watched = groups.look(plan.watch, chunk)
                _keep(history["watch"], watched, -(-step // plan.chunk))
            began, seconds = time.monotonic(), time.monotonic() - began
            report(step, history["loss"][alive, first:step], seconds)
            if save is not None and time.monotonic() > due:
                try:
                    save(Snapshot(np.int64(step), groups.rows(chunk), history))
                except OSError as error:  # what was saved before is whole, and the end saves again
                    if not failed:
                        console.say(f"{plan.training.label}: step {step} is not saved: {error}")
                    failed = True
                due = time.monotonic() + _SAVE_EVERY
        snapshot = Snapshot(np.int64(step), groups.rows(chunk), history)
        if save is not None:
            save(snapshot)
    return snapshot


def _ends(chunk: list[Future], interrupt: Event) -> bool:
    """Whether a chunk comes to its end before a request to stop has waited for it for too long."""
    began = None
    for group in chunk:
        while not futures.wait([group], timeout=0.2).done:
            if interrupt.is_set():
                began = time.monotonic() if began is None else began
                if time.monotonic() - began > _PATIENCE:
                    return False
    return True


def _keep(history: Any, watched: Any, index: int) -> None:
    """Write what is watched from ``index`` on, for the next chunk to correct."""
    for rows, now in zip(jax.tree.leaves(history), jax.tree.leaves(watched), strict=True):
        rows[:, index:] = np.asarray(now)[:, None]
