"""NaN and infinity put into trainings at known steps, and trainings that are healthy.

What is put where and when are leaves of the runs: one program trains all of them.
"""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lsa_lab import training
from lsa_lab.store import checkpoints
from lsa_lab.training.status import Status
from tools.chaos.disk import Lost

PLACES = ("data", "loss", "gradient of a", "gradient of b", "weight a", "weight b")
LEAVES = ("loss", "loss", "a", "b", "a", "b")  # that the status is to name
STEPS, CHUNK = 60, 10
NEVER = STEPS  # a step that no training takes


@jax.custom_vjp
def _spoilt(leaf, bad):
    """The leaf, the gradient of which ``bad`` is added to."""
    return leaf


_spoilt.defvjp(lambda leaf, bad: (leaf, bad), lambda bad, slope: (slope + bad, jnp.zeros_like(bad)))


def _loss(params, batch, own):
    x, t = batch
    bad = _bad(own, t)
    a, b = (_spoilt(params[name], bad[f"gradient of {name}"]) for name in "ab")
    return ((a @ x - 1) ** 2) + 0.1 * (b**4).sum() + bad["loss"]


def _sample(key, t, own):
    return jax.random.normal(key, (3,)) + _bad(own, t)["data"], t


def _optimizer(own):
    """Descent, the update of which has something added to it."""

    def update(updates, count, params=None):
        bad = _bad(own, count)
        return {name: x + bad[f"weight {name}"] for name, x in updates.items()}, count + 1

    start = optax.GradientTransformation(lambda _: jnp.zeros((), jnp.int32), update)
    return optax.chain(optax.adam(0.05), start)


def _bad(own, t):
    """What is put into each place at step t: zero but for one place, at one step."""
    here = (own["place"] == jnp.arange(len(PLACES), dtype=jnp.int32)) & (own["step"] == t)
    return dict(zip(PLACES, jnp.where(here, own["value"], 0.0), strict=True))


def _train(own, files=None, keys=None, **arguments):
    count = len(own["step"])
    start = {"a": jnp.full((count, 3), 0.3), "b": jnp.full((count, 2), 0.5)}
    keys = jnp.repeat(jax.random.key(0)[None], count) if keys is None else keys
    recipe = training.Training(_loss, _sample, _optimizer, STEPS, curriculum=lambda t: t)
    arguments = {"chunk": CHUNK} | arguments
    return training.fit(recipe, start, keys, per_run=own, files=files, **arguments)


def _own(place, step, value):
    return {
        "place": jnp.asarray(place, jnp.int32),
        "step": jnp.asarray(step, jnp.int32),
        "value": jnp.asarray(value, float),
    }


def diverge(steps: int, folder: Path, seed: int = 0) -> int:
    """Put NaN, inf and -inf into every place at each of so many random steps; Lost unless each run
    is typed with step and leaf, is counted within a chunk, and keeps its last finite params."""
    rng, values = np.random.default_rng(seed), (np.nan, np.inf, -np.inf)
    table = [(p, s, v) for s in rng.integers(0, STEPS, steps) for p in range(6) for v in values]
    place, step, value = map(np.array, zip(*table, strict=True))
    folder.mkdir(parents=True, exist_ok=True)
    files = training.Files(folder / "fit.ckpt", folder / "log.jsonl")
    run = _train(_own(place, step, value), files)
    calm = _train(_own([0], [NEVER], [np.nan]), watch=lambda params: params, chunk=1)
    path = calm.history["watch"]  # before each step, and after the last one
    _, kept = checkpoints.unpacked(files.checkpoint.read_bytes(), files.checkpoint)
    for r, end in enumerate(run.status):
        what = f"{value[r]} in {PLACES[place[r]]} at step {step[r]}"
        if end != Status("diverged", int(step[r]), LEAVES[place[r]]):
            raise Lost(f"{what}: {end}")
        if not all(f"({number})" in end.advice for number in (1, 2, 3)):
            raise Lost(f"{what}: without its causes")
        for name in "ab":
            last, before = run.params[name][r], path[name][0, step[r]]
            if not np.allclose(last, before, rtol=1e-12):  # a step moves them by 1e-2
                raise Lost(f"{what}: {name} is not that before the step")
            if not np.array_equal(kept[f".state.params['{name}']"][r], last):
                raise Lost(f"{what}: {name} is another in the checkpoint")
    for line in map(json.loads, files.log.read_text().splitlines()):
        if line["diverged"] != (step < line["step"]).sum():
            raise Lost(f"{line['diverged']} runs diverged by step {line['step']}, says the log")
    return len(table)


def train_healthy(runs: int, width: int | None = None, seed: int = 1) -> int:
    """Trainings into which nothing is put in time, large but finite numbers among them; Lost if
    one is said to have diverged."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, len(PLACES), runs)
    value = np.where(rng.random(runs) < 0.5, np.nan, np.inf)
    step = np.full(runs, NEVER)
    large = place == PLACES.index("loss")  # a loss of 1e100 is no divergence
    step[large], value[large] = rng.integers(0, STEPS, large.sum()), 1e100
    keys = jax.random.split(jax.random.key(seed), runs)
    run = _train(_own(place, step, value), keys=keys, width=width)
    for end in run.status:
        if end.kind == "diverged" or end.step != STEPS:
            raise Lost(f"a healthy training: {end}")
    return runs
