"""Processes of a sweep, or of a whole run, that are killed, signalled, counted and repeated.

The sweep is what a researcher leaves overnight, only short: a training, a grid, a result. Its
processes are forked from one that has imported everything and computed nothing, so that jax has no
threads yet; those that import anew execute Python there.
"""

import hashlib
import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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


def sweep(folder: Path, steps: int = STEPS) -> None:
    """So many steps of a training that saves after every chunk, and for 400 of them four cells of a
    grid. Begun again, it goes on from what lies in the folder."""
    loop._SAVE_EVERY = 0.0
    result = folder / "result.nc"
    if result.exists():
        results.load(result)
        (folder / "fit.ckpt").unlink(missing_ok=True)  # a kill came between the two
        return
    trained = train(training.Files(folder / "fit.ckpt", folder / "log.jsonl"), steps=steps)
    rows = grids.grid(
        [(2 << i % 4, i) for i in range(4 * steps // STEPS)],
        lambda cell: {"risk": _risk(trained.params, jax.random.key(cell[1]), cell[0])},
        folder / "grid",
        facts={"weights": checkpoints.digest(trained.params)},
    )
    arrays = {f"{name}_history": (("run", "step"), x) for name, x in trained.history.items()}
    arrays["risk"] = (("cell", "run"), rows["risk"])
    arrays["weights"] = checkpoints.digest(trained.params)
    arrays["status"] = ("run", np.array([str(status) for status in trained.status]))
    results.save(xr.Dataset(arrays), result, config={"steps": steps})
    (folder / "fit.ckpt").unlink()


def train(
    files: training.Files | None = None,
    rows: Sequence[int] = range(len(RATES)),
    steps: int = STEPS,
    **arguments: Any,
) -> training.Run:
    """Four runs of two layers, each with a rate of its own, or these of them."""
    task, keys = LinearTask(n=8, d=3), jax.random.split(jax.random.key(0), len(RATES))
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
            steps,
        ),
        jax.tree.map(lambda leaf: leaf[chosen], params),
        keys[chosen],
        per_run=jnp.asarray(RATES[chosen], jnp.result_type(float)),
        files=files,
        **{"chunk": CHUNK} | arguments,
    )


@partial(jax.jit, static_argnames="count")
def _risk(params, key: jax.Array, count: int) -> jax.Array:  # [R]
    def risk(params):
        keys = jax.random.split(key, 32)
        batch = jax.vmap(lambda key: sample(key, LinearTask(n=count, d=3)))(keys)
        walks = jax.vmap(lambda p: linear_attention.forward(params, prompts.tokens(p)))(batch)
        return ((jax.vmap(trace.predict)(walks) - batch.y_query) ** 2).mean()

    return jax.lax.map(risk, params)


def end_of_sweep(folder: Path) -> dict[str, Any]:
    """What a sweep that is over leaves: the contents of its result, its log, the names of its
    files."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    begins = max(i for i, line in enumerate(lines) if line["step"] == CHUNK)  # before a first save
    return {
        "result": results.load(folder / "result.nc").attrs["contents_sha256"],
        "log": [(line["step"], line["loss"], line["diverged"]) for line in lines[begins:]],
        "set of files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*")),
    }


def end_of_run(folder: Path) -> dict[str, str]:
    """Digests of all files that a run leaves, its cache among them, by their names; but how long
    it took, which one that was begun again does not know."""

    def contents(path: Path) -> bytes:
        if path.name == "result.nc":
            return results.load(path).attrs["contents_sha256"].encode()
        if path.name == "config.json":
            facts = json.loads(path.read_text())
            own = ("wall_time", "start", "memory", "result", "record")
            return json.dumps({k: v for k, v in facts.items() if k not in own}).encode()
        return path.read_bytes()

    return {
        str(path.relative_to(folder)): hashlib.sha256(contents(path)).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.name != "times"
    }


def execute(words: Sequence[str], **environment: str) -> None:
    """Become a process of Python that imports everything anew."""
    os.chdir(ROOT)
    words = [sys.executable, "-m", *words]
    os.execve(sys.executable, words, os.environ | {"PYTHONPATH": str(ROOT)} | environment)


def _run(folder: Path, *_: Any) -> None:
    """A whole ``python -m experiments run``, with four trainings."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    words = ["experiments", "run", "one_layer_optimum", "--tier", "smoke", "--config.steps", "2000"]
    execute([*words, "--out", str(folder / "figures")], LSA_LAB_CACHE=str(folder / "cache"))


def _kill_within(folder: Path, rng: random.Random) -> None:
    """The sweep in a process that kills itself in the midst of its disk calls."""
    left = rng.randrange(150)

    def see(moment: str, call: Call) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with watch(folder, see):
        sweep(folder)


def _cold(folder: Path, _: random.Random) -> None:
    """The sweep without a cache of programs: most of its time it compiles."""
    jax.config.update("jax_compilation_cache_dir", None)
    sweep(folder)


class Program(NamedTuple):
    """What is killed: each way of a process, with the seconds within which a kill comes, by those
    of one that nobody disturbs, none for one that kills itself; and what an end leaves."""

    ways: dict[str, tuple[Callable[[Path, random.Random], None], Callable[[float], float] | None]]
    end: Callable[[Path], dict]


SWEEP = Program(
    {
        "any instant": (lambda folder, _: sweep(folder), lambda seconds: seconds),
        "inside a save": (_kill_within, None),
        "a new process": (
            lambda folder, _: execute(["tools.chaos.processes", str(folder)]),
            lambda seconds: seconds + 1.5,  # with what importing takes
        ),
        "compiling": (_cold, lambda seconds: 2 * seconds),
    },
    end_of_sweep,
)
RUN = Program({"a whole run": (_run, lambda seconds: seconds)}, end_of_run)


def kill(
    program: Program,
    number: int,
    folder: Path,
    seed: int = 0,
    look: Callable[[int, Path], Any] = lambda pid, place: None,
) -> Counter:
    """Kill processes so many times in all, in each way in turn, and count by what each had left;
    Lost where a program that was begun again ends otherwise than one that nobody disturbs."""
    rng, met = random.Random(seed), Counter()
    calm, place = folder / "undisturbed", empty(folder / "killed")
    first, _ = next(iter(program.ways.values()))
    seconds = run_calmly(lambda: first(calm, rng), calm, look)
    expected = program.end(calm)
    while (kills := met.total() - met[ENDED]) < number or any(place.iterdir()):
        way = list(program.ways)[kills % len(program.ways)]
        act, within = program.ways[way]
        if kills >= number:
            way, act, within = "no kill", first, None
        pid = fork(lambda act=act: act(place, rng))
        rng.random()  # the fork's own draws stay its own
        if was_killed(wait_for(pid, within and rng.uniform(0, within(seconds))), "a process"):
            met[f"{way}, {_where(place)}"] += 1
            continue
        left = program.end(place)
        if left != expected:
            names = {name for name in left | expected if left.get(name) != expected.get(name)}
            raise Lost(f"what was killed ends with another {', '.join(sorted(names))}")
        met[ENDED] += 1
        empty(place)
    if not met[ENDED]:
        raise Lost("no process has ended")
    return met


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


def run_calmly(
    act: Callable[[], Any], folder: Path, look: Callable[[int, Path], Any] = lambda *_: None
) -> float:
    """Seconds that a process takes which nobody disturbs, once its programs are compiled."""
    for _ in range(2):
        empty(folder)
        began = time.monotonic()
        pid = fork(act)
        if code := wait_for(pid, look=lambda pid=pid: look(pid, folder)):
            raise Lost(f"a process that nobody disturbs ends with {code}")
    return time.monotonic() - began


def fork(act: Callable[[], Any]) -> int:
    """A process that does this; what it raises it prints."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background ignores it
        act()
        code = 0
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait_for(pid: int, after: float | None = None, look: Callable[[], Any] = lambda: None) -> int:
    """Its status, once it has ended or was killed after so many seconds; where none are given it
    has to end, and is lost if it does not. Meanwhile one looks."""
    began = time.monotonic()
    while True:
        gone, status = os.waitpid(pid, os.WNOHANG)
        if gone:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - began > (_LONGEST if after is None else after):
            os.kill(pid, signal.SIGKILL)
            status = os.waitpid(pid, 0)[1]
            if after is None:
                raise Lost(f"a process is not at its end after {_LONGEST} s")
            return os.waitstatus_to_exitcode(status)
        look()
        time.sleep(0.002)


def was_killed(code: int, what: str) -> bool:
    """Whether a process was killed, and not over before with 0; Lost if it failed by itself, be it
    just before it was to be killed."""
    if code not in (0, -signal.SIGKILL):
        raise Lost(f"{what} ends with {code}")
    return code != 0


def send_signals(number: int, folder: Path, seed: int = 0) -> list[float]:
    """Seconds from SIGINT or SIGTERM, at any instant of a training, to the end of the process; Lost
    unless what was computed is kept, and the sweep goes on to the same bits. A process that has no
    training any more ends at once, and is not counted."""
    rng, waited, calm, steps = random.Random(seed), [], folder / "undisturbed", 4 * STEPS
    run_calmly(lambda: sweep(calm, steps), calm)
    while len(waited) < number:
        which = (signal.SIGINT, signal.SIGTERM)[len(waited) % 2]
        place, after = empty(folder / "signalled"), CHUNK * rng.randrange(60)
        pid, began = fork(lambda place=place: sweep(place, steps)), time.monotonic()
        while not (place / ".fit.ckpt.lock").exists() or _count_logged(place) < after:
            time.sleep(0.001)
            if time.monotonic() - began > _LONGEST:
                raise Lost(f"a training does not come to step {after}")
        time.sleep(rng.uniform(0, 0.05))
        before, at = _count_logged(place), time.monotonic()
        os.kill(pid, which)
        code = wait_for(pid)
        if code == 128 + which:
            waited.append(time.monotonic() - at)
            kept = place / "fit.ckpt"
            if (
                not kept.exists()
                or checkpoints.unpacked(kept.read_bytes(), kept)[1][".step"] < before
            ):
                raise Lost(f"{which.name}: step {before} was over, and is not kept")
        elif code not in (0, -which):
            raise Lost(f"{which.name} ends with {code}")
        wait_for(fork(lambda place=place: sweep(place, steps)))
        if end_of_sweep(place) != end_of_sweep(calm):
            raise Lost(f"a sweep that {which.name} has ended goes on to other bits")
    return waited


def _count_logged(folder: Path) -> int:
    log = folder / "log.jsonl"
    return CHUNK * (log.read_text().count("\n") if log.exists() else 0)


def soak(steps: int, number: int, folder: Path, seed: int = 0) -> Iterator[str]:
    """A sweep of so many steps, whose memory is read while nobody disturbs it, and which is then
    killed so many times; lines that say what was counted. Lost if memory grows or bits differ."""
    samples: dict[str, list] = {}
    last = [0, 0.0]  # a process, and when it was looked at

    def look(pid: int, place: Path) -> None:
        if place.name != "undisturbed" or (
            pid == last[0] and time.monotonic() - last[1] < steps / 1e4
        ):
            return
        if pid != last[0]:
            samples.update(training=[], grid=[])
        last[:] = pid, time.monotonic()
        samples["grid" if (place / "grid").exists() else "training"].append(
            (last[1], *_memory(pid))
        )

    act = lambda place, _: execute(["tools.chaos.processes", str(place), str(steps)])  # noqa: E731
    program = Program({"a new process": (act, lambda seconds: seconds / 3)}, end_of_sweep)
    met = kill(program, number, folder, seed, look)
    yield f"{steps} steps of 4 runs, {4 * steps // STEPS} cells: {dict(met)}"
    for name, taken in samples.items():
        yield f"memory in the {name}: {growth(taken)}"


def growth(samples: list[tuple[float, float, float]]) -> str:
    """What (seconds, MB resident, MB at the most) say of a phase between its first two samples, in
    which programs are compiled, and its last; Lost if memory or its peak grows by 3 % in it.

    The slope is the median of those of all pairs: some samples fall into a save, which has all
    arrays twice.
    """
    rows = np.array(samples[2:-1]).reshape(-1, 3)
    if len(rows) < 3:
        return f"only {len(samples)} samples"
    seconds, resident, most = rows.T
    pairs = itertools.combinations(zip(seconds, resident, strict=True), 2)
    slope = np.median([(last - first) / (end - begin) for (begin, first), (end, last) in pairs])
    words = (
        f"{len(rows)} samples, {resident.min():.1f} to {resident.max():.1f} MB, in the middle "
        f"{3600 * slope:+.2f} MB an hour; its peak {most[0]:.1f} to {most[-1]:.1f} MB"
    )
    grown = max(slope * (seconds[-1] - seconds[0]), most[-1] - most[0])
    if grown > 0.03 * np.median(resident):
        raise Lost(f"memory grows: {words}")
    return words


def _memory(pid: int) -> tuple[float, float]:  # MB
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    now, most = (float(fields.get(name, "nan kB").split()[0]) for name in ("VmRSS", "VmHWM"))
    return now / 1024, most / 1024


def _fill_cells(folder: Path, number: int) -> None:
    """Risks at four numbers of shots and as many seeds as make the cells so many."""
    keys = jax.random.split(jax.random.key(0), 4)
    params = jax.vmap(lambda key: linear_attention.init(key, 2, 1, 3))(keys)
    cells = [(2 << i % 4, i // 4) for i in range(number)]
    judge = lambda cell: {"risk": _risk(params, jax.random.key(cell[1]), cell[0])}  # noqa: E731
    assert grids.grid(cells, judge, folder)["risk"].shape == (number, 4)


def _train_runs(folder: Path, number: int) -> None:
    """A training of so many runs, each with a rate and a key of its own."""
    recipe = training.Training(
        lambda w, batch, rate: ((w - batch) ** 2).mean(),
        lambda key, rate: 3 + jax.random.normal(key, (8,)),
        optax.sgd,
        steps=20,
    )
    keys, files = jax.random.split(jax.random.key(0), number), training.Files(folder / "fit.ckpt")
    rates = jnp.geomspace(1e-3, 0.3, number)
    run = training.fit(recipe, jnp.zeros(number), keys, per_run=rates, files=files)
    assert np.isfinite(run.history["loss"]).all()


def many(number: int, folder: Path) -> Iterator[str]:
    """Programs compiled, files, and seconds to take up what is finished, of a grid of so many cells
    and a training of so many runs; Lost where it is more than was promised."""
    for name, act in (("cells of a grid", _fill_cells), ("runs of a training", _train_runs)):
        place, said = empty(folder / name), folder / "said.json"
        files = 0

        def count(place: Path = place) -> None:
            nonlocal files
            files = max(files, sum(1 for _ in place.iterdir()))

        def counted(act: Callable = act, place: Path = place, said: Path = said) -> None:
            compiled, began = [], time.monotonic()
            jax.monitoring.register_event_duration_secs_listener(
                lambda event, *_, **__: compiled.append(event.endswith("backend_compile_duration"))
            )
            act(place, number)
            said.write_text(json.dumps([sum(compiled), time.monotonic() - began]))

        for _ in range(2):
            was_killed(wait_for(fork(counted), look=count), f"a sweep of {number} {name}")
            programs, seconds = json.loads(said.read_text())
            words = f"{number} {name}: {programs} programs, {seconds:.1f} s, {files} files at most"
            yield words
            if programs > 25 or files > 200:
                raise Lost(words)
        if seconds > 5:
            raise Lost(f"what is finished is taken up in {seconds:.1f} s")


# Rows of each call of fit, and its arguments. A width is part of a run's identity: each has bits of
# its own, and they know nothing of who else is in the group.
_ALL = [[0, 1, 2, 3]]
REPEATS: dict[str, tuple[list[list[int]], dict[str, int]]] = {
    **{f"chunks of {chunk}": (_ALL, {"chunk": chunk}) for chunk in (1, 7, 50, STEPS)},
    "alone": ([[0], [1], [2], [3]], {}),
    "shuffled": ([[2, 0, 3, 1]], {}),
    "without the one that diverges": ([[0, 1, 2], [3]], {}),
    "width 2": (_ALL, {"width": 2}),
    "width 2, shuffled": ([[2, 0, 3, 1]], {"width": 2}),
    "width 2, beside the one that diverges": ([[0, 3], [1, 3], [2, 3]], {"width": 2}),
}


def repeat(processes: int, folder: Path) -> Counter:
    """How many trainings gave the same bits, for each width, in processes on one core and on two;
    Lost if one gave others."""
    said, counts = empty(folder) / "said.json", Counter()
    digests: dict[str, tuple] = {}

    def train_every_way(cores: int) -> None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
        ways = {}
        for way, (calls, arguments) in REPEATS.items():
            rows = {}
            for chosen in calls:
                run = train(rows=chosen, **arguments)
                for place, row in enumerate(chosen):
                    leaves = jax.tree.map(lambda leaf, i=place: leaf[i], (run.params, run.history))
                    rows[row] = checkpoints.digest(leaves)
            ways[way] = [rows[row] for row in range(4)]
        said.write_text(json.dumps(ways))

    for number in range(processes):
        was_killed(wait_for(fork(lambda cores=1 + number % 2: train_every_way(cores))), "a process")
        for way, runs in json.loads(said.read_text()).items():
            width = "trainings of width 2" if way.startswith("width 2") else "trainings of width 1"
            counts[width] += len(runs)
            if digests.setdefault(width, runs) != runs:
                raise Lost(f"process {number} on {1 + number % 2} cores, {way}: other bits")
    return counts


if __name__ == "__main__":
    process.configure()
    sweep(Path(sys.argv[1]), *map(int, sys.argv[2:]))
