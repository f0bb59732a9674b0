"""Processes that are killed while they sweep, and begun again until they have ended.

They are forked from one that has imported everything and computed nothing: jax has no threads yet.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import jax
import numpy as np

from tools.chaos import sweep
from tools.chaos.calls import Call, watched
from tools.chaos.lost import ROOT, Lost, was_killed

WAYS = ("any instant", "inside a save", "a new process", "compiling")
ENDS = ("result", "log", "set of files")
_LONGEST = 300.0  # seconds of one process


def kills(number: int, folder: Path, seed: int = 0) -> Counter:
    """Kill sweeps so many times in all, in each way in turn, and count by what it met; raise Lost
    if one ends otherwise than the one that nobody disturbs."""
    rng, met = random.Random(seed), Counter()
    seconds = _seconds(folder / "undisturbed")
    expected = sweep.end(folder / "undisturbed")
    place, sweeps = folder / "sweep", 0
    _empty(place)
    while sum(met.values()) < number or sweep_is_on(place):
        way = WAYS[sum(met.values()) % len(WAYS)] if sum(met.values()) < number else None
        code = _process(way, place, seconds, rng)
        if was_killed(code, "a sweep that was killed"):
            met[f"{way}, {_where(place)}"] += 1
        else:
            if sweep.end(place) != expected:
                other = [
                    name
                    for name, was, ought in zip(ENDS, sweep.end(place), expected, strict=True)
                    if was != ought
                ]
                odd = sorted(sweep.end(place)[2] ^ expected[2])
                raise Lost(f"a sweep that was killed ends with another {', '.join(other)}: {odd}")
            sweeps += 1
            _empty(place)
    if not sweeps:
        raise Lost("no sweep has ended")
    return met + Counter({"sweeps that ended with the same bits": sweeps})


def sweep_is_on(place: Path) -> bool:
    return any(place.iterdir())


def signals(number: int, folder: Path, seed: int = 0) -> list[float]:
    """Seconds from SIGINT or SIGTERM, at any instant of a training, to the end of the process; Lost
    unless what was computed is kept, and the sweep goes on to the same bits. A process that has no
    training any more ends at once, and is not counted."""
    with mock.patch.object(sweep, "STEPS", 1600):  # long enough to be met in it
        return _signals(number, folder, random.Random(seed))


def _signals(number: int, folder: Path, rng: random.Random) -> list[float]:
    waited: list[float] = []
    _seconds(folder / "undisturbed")
    while len(waited) < number:
        which = (signal.SIGINT, signal.SIGTERM)[len(waited) % 2]
        place, after = _empty(folder / "signalled"), sweep.CHUNK * rng.randrange(60)
        process = _fork(lambda place=place: sweep.run(place))
        began = time.monotonic()
        while not (place / ".fit.ckpt.lock").exists() or _logged(place) < after:
            time.sleep(0.001)
            if time.monotonic() - began > _LONGEST:
                raise Lost(f"a training does not come to step {after}")
        time.sleep(rng.uniform(0, 0.05))
        before, signalled = _logged(place), time.monotonic()
        os.kill(process, which)
        code = _ended(process)
        if code == 128 + which:
            waited.append(time.monotonic() - signalled)
            if not (place / "fit.ckpt").exists():
                raise Lost(f"{which.name} has ended a training, and nothing is kept")
            if _checkpoint_step(place) < before:
                raise Lost(f"{which.name}: step {before} was over, and is not kept")
        elif code not in (0, -which):
            raise Lost(f"{which.name} ends with {code}")
        _ended(_fork(lambda place=place: sweep.run(place)))
        if sweep.end(place) != sweep.end(folder / "undisturbed"):
            raise Lost(f"a sweep that {which.name} has ended goes on to other bits")
    return waited


def _seconds(folder: Path) -> float:
    """What a sweep takes that nobody disturbs, once its programs are compiled."""
    for _ in range(2):
        _empty(folder)
        began = time.monotonic()
        if code := _ended(_fork(lambda: sweep.run(folder))):
            raise Lost(f"a sweep that nobody disturbs ends with {code}")
    return time.monotonic() - began


def _process(way: str | None, place: Path, seconds: float, rng: random.Random) -> int:
    """The status of a process of the sweep, killed in that way or at none."""
    if way == "inside a save":
        return _ended(_fork(lambda: _dying(place, rng.randrange(150))))
    if way == "a new process":
        process = subprocess.Popen(
            [sys.executable, "-m", "tools.chaos.sweep", str(place)], cwd=ROOT
        )
        delay = rng.uniform(0, seconds + 1.5)  # with what importing takes
        pid = process.pid
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(delay)
        process.kill()
        return process.wait()
    if way == "compiling":
        pid, delay = _fork(lambda: _cold(place)), rng.uniform(0, 2 * seconds)
    else:
        pid, delay = _fork(lambda: sweep.run(place)), rng.uniform(0, seconds)
    return _ended(pid, None if way is None else delay)


def _dying(place: Path, count: int) -> None:
    """The sweep in a process that kills itself in the midst of its disk calls."""

    def see(moment: str, call: Call) -> None:
        nonlocal count
        count -= 1
        if count < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with watched(place, see):
        sweep.run(place)


def _cold(place: Path) -> None:
    """The sweep without a cache of programs: most of its time it compiles."""
    jax.config.update("jax_compilation_cache_dir", None)
    sweep.run(place)


def _fork(act: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
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
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _ended(pid: int, after: float | None = None) -> int:
    """Its status, once it has ended or was killed after so many seconds; where none are given it
    has to end, and is lost if it does not."""
    began = time.monotonic()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - began > (_LONGEST if after is None else after):
            os.kill(pid, signal.SIGKILL)
            status = os.waitpid(pid, 0)[1]
            if after is None:
                raise Lost(f"a process is not at its end after {_LONGEST} s")
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)


def _where(place: Path) -> str:
    """How far a sweep is, by what it has left."""
    if any(place.rglob("*.tmp")):
        return "a file half written"
    for name, words in (("grid", "in the grid"), ("fit.ckpt", "in the training")):
        if (place / name).exists():
            return words
    return "before the first save"


def _logged(place: Path) -> int:
    log = place / "log.jsonl"
    return sweep.CHUNK * (log.read_text().count("\n") if log.exists() else 0)


def _checkpoint_step(place: Path) -> np.ndarray:  # []
    from lsa_lab.store import checkpoints

    _, arrays = checkpoints.unpacked((place / "fit.ckpt").read_bytes(), place)
    return arrays[".step"]


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
