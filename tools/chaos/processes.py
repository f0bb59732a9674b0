"""A sweep whose processes are killed, begun again and again, and ends with the bits of a calm one.

It is what a researcher leaves overnight, only short: a training, a grid, a result. Its processes
are forked from one that has imported everything and computed nothing, so that jax has no threads
yet; those that import anew execute Python there.
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
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
from tools.chaos.disk import ROOT, Call, Lost, watch
from tools.chaos.writers import empty

RATES = np.array([0.001, 0.002, 0.005, 1e300])  # the last one diverges
STEPS, CHUNK = 400, 20
ENDED = "ended with the same bits"
_LONGEST = 900.0  # seconds of one process


def sweep(folder: Path, _: Any = None) -> None:
    """A training that saves after every chunk, and four cells of a grid. Begun again, it goes on
    from what lies in the folder."""
    loop._SAVE_EVERY = 0.0
    result = folder / "result.nc"
    if result.exists():
        results.load(result)
        (folder / "fit.ckpt").unlink(missing_ok=True)  # a kill came between the two
        return
    trained = train(training.Files(folder / "fit.ckpt", folder / "log.jsonl"))
    rows = grids.grid(
        [(2 << i, i) for i in range(4)],
        lambda cell: {"risk": _risks(trained.params, jax.random.key(cell[1]), cell[0])},
        folder / "grid",
        facts={"weights": checkpoints.digest(trained.params)},
    )
    arrays = {f"{name}_history": (("run", "step"), x) for name, x in trained.history.items()}
    arrays["risk"] = (("cell", "run"), rows["risk"])
    arrays["weights"] = checkpoints.digest(trained.params)
    arrays["status"] = ("run", np.array([str(status) for status in trained.status]))
    results.save(xr.Dataset(arrays), result, config={"steps": STEPS})
    (folder / "fit.ckpt").unlink()


def train(files: training.Files) -> training.Run:
    """Four runs of two layers, each with a rate of its own."""
    keys = jax.random.split(jax.random.key(0), len(RATES))

    def optimizer(rate: jax.Array) -> optax.GradientTransformation:
        return optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(rate))

    return training.fit(
        training.Training(_risk, partial(_draw, 8, 16), optimizer, STEPS),
        jax.jit(jax.vmap(lambda key: linear_attention.init(key, 2, 1, 3)))(keys),
        keys,
        per_run=jnp.asarray(RATES, jnp.result_type(float)),
        files=files,
        chunk=CHUNK,
    )


def _draw(n: int, size: int, key: jax.Array, _: Any = None) -> prompts.Prompt:  # [size]
    return jax.vmap(lambda key: sample(key, LinearTask(n, d=3)))(jax.random.split(key, size))


def _risk(params: Any, batch: prompts.Prompt, _: Any = None) -> jax.Array:
    walks = jax.vmap(lambda p: linear_attention.forward(params, prompts.tokens(p)))(batch)
    return ((jax.vmap(trace.predict)(walks) - batch.y_query) ** 2).mean()


@partial(jax.jit, static_argnames="n")
def _risks(params: Any, key: jax.Array, n: int) -> jax.Array:  # [R]
    return jax.lax.map(lambda params: _risk(params, _draw(n, 32, key)), params)


def end_of(folder: Path) -> dict[str, Any]:
    """What a sweep that is over leaves: the contents of its result, its log, the names of its
    files."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    begins = max(i for i, line in enumerate(lines) if line["step"] == CHUNK)  # before a first save
    return {
        "result": results.load(folder / "result.nc").attrs["contents_sha256"],
        "log": [(line["step"], line["loss"], line["diverged"]) for line in lines[begins:]],
        "set of files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*")),
    }


def _kill_itself(folder: Path, rng: random.Random) -> None:
    """The sweep in a process that kills itself in the midst of its disk calls."""
    left = rng.randrange(150)

    def see(moment: str, call: Call) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with watch(folder, see):
        sweep(folder)


def _import_anew(folder: Path, _: random.Random) -> None:
    os.chdir(ROOT)
    words = [sys.executable, "-m", "tools.chaos.processes", str(folder)]
    os.execve(sys.executable, words, os.environ | {"PYTHONPATH": str(ROOT)})


def _compile(folder: Path, _: random.Random) -> None:
    """The sweep without a cache of programs: most of its time it compiles."""
    jax.config.update("jax_compilation_cache_dir", None)
    sweep(folder)


# The ways of a process, and the seconds within which a kill comes, by those of one that nobody
# disturbs; none for one that kills itself.
WAYS: dict[str, tuple[Callable, Callable[[float], float] | None]] = {
    "any instant": (sweep, lambda seconds: seconds),
    "inside a save": (_kill_itself, None),
    "a new process": (_import_anew, lambda seconds: seconds + 1.5),  # with what importing takes
    "compiling": (_compile, lambda seconds: 2 * seconds),
}


def kill(number: int, folder: Path, seed: int = 0) -> Counter:
    """Kill processes so many times in all, in each way in turn, and count by what each had left;
    Lost where a sweep that was begun again ends otherwise than one that nobody disturbs."""
    rng, met = random.Random(seed), Counter()
    calm, place = folder / "undisturbed", empty(folder / "killed")
    for _ in range(2):  # once its programs are compiled it takes so many seconds
        began = time.monotonic()
        if is_killed(sweep, empty(calm), rng):
            raise Lost("a process that nobody disturbs is killed")
        seconds = time.monotonic() - began
    expected = end_of(calm)
    while (kills := met.total() - met[ENDED]) < number or any(place.iterdir()):
        way = list(WAYS)[kills % len(WAYS)] if kills < number else "no kill"
        act, within = WAYS.get(way, (sweep, None))
        if is_killed(act, place, rng, within and rng.uniform(0, within(seconds))):
            met[f"{way}, {_where(place)}"] += 1
            continue
        left = end_of(place)
        if left != expected:
            names = {name for name in expected if left[name] != expected[name]}
            raise Lost(f"what was killed ends with another {', '.join(sorted(names))}")
        met[ENDED] += 1
        empty(place)
    if not met[ENDED]:
        raise Lost("no process has ended")
    return met


def is_killed(act: Callable, folder: Path, rng: random.Random, after: float | None = None) -> bool:
    """Whether a process that does this was killed, after so many seconds or by itself, and not over
    before with 0; Lost if it failed by itself, or does not end where it has to."""
    child = multiprocessing.get_context("fork").Process(target=act, args=(folder, rng))
    child.start()
    rng.random()  # the fork's own draws stay its own
    began, limit = time.monotonic(), _LONGEST if after is None else after
    while (is_late := child.is_alive()) and time.monotonic() - began < limit:
        time.sleep(0.002)  # join would wait for one that imports anew
    child.kill()
    child.join()
    if is_late and after is None:
        raise Lost(f"a process is not at its end after {_LONGEST} s")
    if child.exitcode not in (0, -signal.SIGKILL):
        raise Lost(f"a process ends with {child.exitcode}")
    return child.exitcode != 0


def _where(folder: Path) -> str:
    """How far it is, by what it has left."""
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    if any(name.endswith(".tmp") for name in names):
        return "a file half written"
    stages = {"result.nc": "a result is there", "grid/": "in the grid", ".ckpt": "in a training"}
    for part, words in stages.items():
        if any(part in name and ".lock" not in name for name in names):
            return words
    return "before the first save" if names else "before the first file"


if __name__ == "__main__":
    process.configure()
    sweep(Path(sys.argv[1]))
