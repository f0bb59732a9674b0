"""fit: one loop for every model, one run or many, that can be killed and taken up again.

A run's bits depend on its own params, key and setting, and on ``width``: not on the other runs, on
``chunk``, on the number of devices, or on where it was interrupted.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab import checkpoints, console, runs
from lsa_lab.status import Status, status_of

if TYPE_CHECKING:
    from rich.progress import Progress

_SAVE_EVERY = 5.0  # seconds between two checkpoints, at least


@dataclass(frozen=True)
class Run:
    """The last finite params, a record of every step, and how it ended; leading axis R for many.

    ``history`` has "loss" and "grad_norm", both before the step's update, in float64 whatever the
    model's precision, NaN from the step on at which a run diverged; and "watch", if asked for, of
    the params before the first step and after every chunk (those of a diverged run stand still).
    """

    params: Any
    history: dict[str, Any]  # [steps] or [R, steps]; "watch" [C+1, ...] or [R, C+1, ...]
    status: Status | tuple[Status, ...]


def fit(
    loss: Callable,
    params: Any,
    optimizer: optax.GradientTransformation | Callable,
    sample: Callable,
    key: Array,
    steps: int,
    *,
    settings: Any = None,
    curriculum: Callable | None = None,
    chunk: int = 100,
    width: int = 1,
    watch: Callable | None = None,
    progress: "Progress | None" = None,
    label: str = "training",
    log: str | Path | None = None,
    checkpoint: str | Path | None = None,
    identity: str = "",
) -> Run:
    """Minimise ``loss(params, batch)`` for ``steps`` steps, each on a fresh batch ``sample(key)``.

    Step t draws from fold_in(data_key, t), data_key a tagged child of ``key``: never split ``key``.
    A batch of keys [R] means R runs, and a leading axis R of every leaf of ``params`` and of
    ``settings``; with settings the functions are loss(params, batch, setting), sample(key, setting)
    and optimizer(setting) -> transformation. A ``curriculum``, an optax-style schedule step ->
    stage (``tasks.curricula``), makes it sample(key, stage) or sample(key, stage, setting).
    ``width`` runs are trained side by side. ``watch`` (params) -> arrays is kept of each chunk; the
    chunks are equal if ``chunk`` divides ``steps``.

    A run that diverges keeps its last finite params. Ctrl-C waits for the end of a chunk. With
    ``checkpoint`` the same call, repeated after any end, goes on to the same bits, and returns at
    once when nothing is left to do: the caller deletes the file. ``identity`` tells apart what the
    arrays cannot, the loss for one. ``log`` gains one JSON line a chunk; going on from a checkpoint
    repeats none of them, a start from nothing begins to count again.
    """
    for argument, value in (("steps", steps), ("chunk", chunk), ("width", width)):
        if value < 1:
            raise ValueError(f"{argument} = {value}: it is at least 1")
    many = runs.count(params, key, settings)
    parts = (loss, sample, optimizer)
    if settings is None:
        parts, settings = (_plain(loss), _plain(sample), lambda _: optimizer), ()
    recipe = runs.Recipe(*parts, steps, runs.impl(key), curriculum)
    inputs = optax.tree.unwrap_random_key_data((params, key, settings))
    inputs = jax.tree.map(lambda x: np.asarray(x if many else jnp.asarray(x)[None]), inputs)
    chunk = -(-steps // -(-steps // chunk))  # nearly equal, to waste no steps
    facts = {"identity": identity, "steps": steps, "width": width, "runs": many or 1}
    if watch is not None:
        facts["chunk"] = chunk
    facts |= _digests(recipe, inputs)
    look = None if watch is None else jax.jit(lambda params: jax.lax.map(watch, params))
    held = _take_up(recipe, inputs, chunk, look, checkpoint, facts)
    tell = console.teller(label, log, progress, many or 1, steps, held.done())
    save = (lambda held: checkpoints.save(checkpoint, held, facts)) if checkpoint else None
    if held.done() < steps:
        held = _go_on(recipe, held, inputs, width, chunk, look, tell, save)
    names = [runs.name(path) or "params" for path, _ in jax.tree.leaves_with_path(params)]
    ends = zip(held.state.finite, held.state.taken, held.history["loss"], strict=True)
    status = tuple(status_of(*end, names) for end in ends)
    trained = jax.tree.map(jnp.asarray, held.state.params)
    if many:
        return Run(trained, held.history, status)
    return Run(*jax.tree.map(lambda rows: rows[0], (trained, held.history)), status[0])


def _digests(recipe: runs.Recipe, inputs: tuple) -> dict[str, str]:
    """By which a checkpoint of another call is known."""
    trees = dict(zip(("initial params", "keys", "settings"), inputs, strict=True))
    if recipe.curriculum is not None:
        stages = jax.jit(jax.vmap(recipe.curriculum))(jnp.arange(recipe.steps, dtype=jnp.int32))
        trees["curriculum"] = jax.device_get(stages)
    return {name: checkpoints.digest(tree) for name, tree in trees.items()}


@flax.struct.dataclass
class _Held:
    """What a checkpoint holds of R runs."""

    step: np.ndarray  # []  steps tried
    state: runs.State  # every leaf [R, ...]
    history: dict[str, Any]  # [R, steps], "watch" [R, C+1, ...]

    def done(self) -> int:
        """Steps behind us; all of them if every run has diverged."""
        alive = np.all(self.state.finite, 1).any()
        return int(self.step) if alive else self.history["loss"].shape[1]


def _take_up(
    recipe: runs.Recipe,
    inputs: tuple,
    chunk: int,
    look: Callable | None,
    checkpoint: str | Path | None,
    facts: dict,
) -> _Held:
    """What the checkpoint holds, or the runs before their first step."""
    params, _, settings = inputs
    start = jax.jit(lambda *rows: jax.lax.map(lambda row: recipe.start(*row), rows))
    shape = (facts["runs"], recipe.steps)
    history = {name: np.full(shape, np.nan) for name in ("loss", "grad_norm")}
    if look is not None:
        looks = 1 + -(-recipe.steps // chunk)
        history["watch"] = jax.tree.map(
            lambda seen: np.repeat(np.asarray(seen)[:, None], looks, axis=1), look(params)
        )
    if checkpoint is None or not Path(checkpoint).exists():
        return _Held(np.int64(0), jax.device_get(start(params, settings)), history)
    like = _Held(np.int64(0), jax.eval_shape(start, params, settings), history)
    held = checkpoints.load(checkpoint, like, facts)
    return held.replace(history=jax.tree.map(np.array, held.history))  # to be written to


def _go_on(
    recipe: runs.Recipe,
    held: _Held,
    inputs: tuple,
    width: int,
    chunk: int,
    look: Callable | None,
    tell: Callable,
    save: Callable | None,
) -> _Held:
    """Chunk after chunk, until all is over or Ctrl-C asks to stop."""
    alive, history, step = np.all(held.state.finite, 1), held.history, int(held.step)
    fleet = runs.Fleet(len(alive), width)
    advance = fleet.program(recipe.step, chunk)
    groups = list(zip(fleet.members, *map(fleet.spread, inputs[1:]), strict=True))
    states = fleet.spread(held.state)
    due = time.monotonic() + _SAVE_EVERY
    with console.interrupts_wait() as asked:
        while step < recipe.steps and alive.any() and not asked.is_set():
            began, first, step = time.monotonic(), step, min(step + chunk, recipe.steps)
            records = {}
            for g, (members, key, setting) in enumerate(groups):
                if alive[members].any():  # the calls return at once: the devices work in parallel
                    states[g], records[g] = advance(states[g], key, setting, np.int32(first))
            for g, record in records.items():
                members = fleet.members[g]
                alive[members] = np.asarray(states[g].finite).all(-1)
                for name, values in jax.device_get(record).items():
                    history[name][members, first:step] = values[..., : step - first]
            if look is not None:
                seen = look(fleet.rows([state.params for state in states]))
                _see(history["watch"], seen, -(-step // chunk))
            tell(step, history["loss"][alive, first:step], time.monotonic() - began)
            if save is not None and time.monotonic() > due:
                save(_Held(np.int64(step), fleet.rows(states), history))
                due = time.monotonic() + _SAVE_EVERY
        held = _Held(np.int64(step), fleet.rows(states), history)
        if save is not None:
            save(held)
    return held


def _see(watched: Any, seen: Any, index: int) -> None:
    """Keep what is seen from ``index`` on, for the next chunk to correct."""
    for rows, now in zip(jax.tree.leaves(watched), jax.tree.leaves(seen), strict=True):
        rows[:, index:] = np.asarray(now)[:, None]


def _plain(function: Callable) -> Callable:
    return lambda *arguments: function(*arguments[:-1])
