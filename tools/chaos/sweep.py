"""A sweep as a researcher leaves it overnight, only short: a training, a grid, a result.

``python -m tools.chaos.sweep FOLDER`` is one process of it; the same words go on after any end.
"""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from lsa_lab import prompts, training
from lsa_lab.harness.run import process
from lsa_lab.models import linear_attention, trace
from lsa_lab.store import checkpoints, grids, results
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.training import loop

RATES = np.array([0.001, 0.002, 0.005, 1e300])  # the last one diverges
STEPS, CHUNK, SEED = 400, 20, 0
CELLS = tuple(("shots", count) for count in (2, 4, 8))


def run(folder: Path, save_every: float = 0.0, bar: Any = None) -> None:
    """A sweep that saves after every chunk, or after so many seconds; ``bar`` has the methods of a
    progress bar."""
    loop._SAVE_EVERY = save_every
    result = folder / "result.nc"
    if result.exists():
        results.load(result)
        (folder / "fit.ckpt").unlink(missing_ok=True)  # a kill came between the two
        return
    files = training.Files(folder / "fit.ckpt", folder / "log.jsonl")
    trained = train(files, progress=bar)
    rows = grids.grid(
        CELLS,
        lambda cell: {"risk": _risks(trained.params, *cell)},
        folder / "grid",
        facts={"weights": checkpoints.digest(trained.params)},
        progress=bar and bar.update,
    )
    arrays = {f"{name}_history": (("run", "step"), x) for name, x in trained.history.items()}
    arrays["risk"] = (("cell", "run"), rows["risk"])
    arrays["weights"] = checkpoints.digest(trained.params)
    arrays["status"] = ("run", np.array([str(status) for status in trained.status]))
    results.save(xr.Dataset(arrays), result, config={"steps": STEPS})
    (folder / "fit.ckpt").unlink()


def train(
    files: training.Files | None = None, rows: Sequence[int] = range(len(RATES)), **arguments: Any
) -> training.Run:
    """Four runs of two layers, each with a rate of its own, or these of them."""
    task, keys = LinearTask(n=8, d=3), jax.random.split(jax.random.key(SEED), len(RATES))
    params = jax.jit(jax.vmap(lambda key: linear_attention.init(key, 2, 1, 3)))(keys)
    chosen = np.array(rows)

    def loss(params, batch, rate):
        def error(prompt):
            walk = linear_attention.forward(params, prompts.tokens(prompt))
            return (trace.predict(walk) - prompt.y_query) ** 2

        return jax.vmap(error)(batch).mean()

    return training.fit(
        training.Training(
            loss,
            lambda key, rate: jax.vmap(lambda key: sample(key, task))(jax.random.split(key, 16)),
            lambda rate: optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(rate)),
            STEPS,
        ),
        jax.tree.map(lambda leaf: leaf[chosen], params),
        keys[chosen],
        per_run=jnp.asarray(RATES[chosen], jnp.result_type(float)),
        files=files,
        **{"chunk": CHUNK} | arguments,
    )


def _risks(params, axis: str, number: int) -> jax.Array:  # [R]
    """The risks on prompts of so many shots, or of eight from a seed."""
    return _risk(params, jax.random.key(number), number if axis == "shots" else 8)


@partial(jax.jit, static_argnames="count")
def _risk(params, key: jax.Array, count: int) -> jax.Array:  # [R]
    def risk(params):
        keys = jax.random.split(key, 32)
        batch = jax.vmap(lambda key: sample(key, LinearTask(n=count, d=3)))(keys)
        walks = jax.vmap(lambda p: linear_attention.forward(params, prompts.tokens(p)))(batch)
        return ((jax.vmap(trace.predict)(walks) - batch.y_query) ** 2).mean()

    return jax.lax.map(risk, params)


def end(folder: Path) -> tuple:
    """What a sweep that is over leaves: the contents of its result, its log, the names of its
    files."""
    contents = results.load(folder / "result.nc").attrs["contents_sha256"]
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    begins = max(i for i, line in enumerate(lines) if line["step"] == CHUNK)  # before a first save
    log = tuple((line["step"], line["loss"], line["diverged"]) for line in lines[begins:])
    names = frozenset(str(path.relative_to(folder)) for path in folder.rglob("*"))
    return contents, log, names


if __name__ == "__main__":
    process.configure()
    run(Path(sys.argv[1]))
