"""A long sweep that is killed every few minutes beside one that nobody disturbs, whose memory is
read once a minute.

Both keep a beat, so that they last as long on a busy machine as on a quiet one: each chunk of the
training and each cell of the grid is followed by a rest to the end of its beat.

``python -m tools.chaos.soak FOLDER BEATS SECONDS SEED`` is one process of it.
"""

import itertools
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from unittest import mock

import jax
import numpy as np

from lsa_lab.harness.run import process
from lsa_lab.training import loop
from tools.chaos import sweep
from tools.chaos.lost import ROOT, Lost, was_killed

STEPS = 200  # of a beat of the training, which is two beats of three; the others are cells
BEAT = 0.9  # seconds: processes that begin again take the rest
MOST_GROWTH = 0.03  # of the memory, over a phase of the sweep
PHASES = ("training", "grid")


class Beat:
    """What ``fit`` and ``grid`` report their progress to, and wait for."""

    def __init__(self, seconds: float):
        self._seconds, self._last = seconds, time.monotonic()

    def add_task(self, *_: Any, **__: Any) -> int:
        return 0

    def update(self, *_: Any, **__: Any) -> None:
        time.sleep(max(0.0, self._last + self._seconds - time.monotonic()))
        self._last = time.monotonic()


def sized(beats: int, seed: int = 0) -> Any:
    """A context in which the sweep has so many beats."""
    cells = tuple(("seed", number) for number in range(beats - 2 * beats // 3))
    size = {"CHUNK": STEPS, "SEED": seed, "STEPS": STEPS * (2 * beats // 3), "CELLS": cells}
    return mock.patch.multiple(sweep, **size)


def soak(minutes: float, folder: Path, seed: int = 0) -> Iterator[str]:
    """Lines that say what was counted; raise Lost if the two end with other bits, if memory grows,
    or if another seed gives the same bits."""
    beats = max(6, round(60 * minutes))
    calm, killed = folder / "calm", folder / "killed"
    with sized(beats):
        pair = Pair(calm, killed, beats, minutes)
        cpu, began = _cpu_of_children(), time.monotonic()
        pair.run(random.Random(seed))
        seconds = time.monotonic() - began
        yield (
            f"{seconds / 60:.1f} minutes, {(_cpu_of_children() - cpu) / seconds:.2f} of a core; "
            f"{sum(pair.kills.values())} kills, {dict(pair.kills)}"
        )
        digest, log, _ = ends = sweep.end(calm)
        if sweep.end(killed) != ends:
            raise Lost("a sweep that was killed ends with other bits")
        if log[-1][0] != sweep.STEPS or log[-1][2] != 1:
            raise Lost(f"the log of the training ends with {log[-1]}: it was no long one")
        yield f"{sweep.STEPS} steps of 4 runs, {len(sweep.CELLS)} cells: {digest[:12]} of both"
    for name in PHASES:
        yield f"memory in the {name}: {growth(pair.samples[name])}"
    yield _control(folder)


class Pair:
    """A sweep that nobody disturbs, whose memory is read, and one that is killed."""

    def __init__(self, calm: Path, killed: Path, beats: int, minutes: float):
        self.calm, self.killed, self._beats, self._minutes = calm, killed, beats, minutes
        self.samples: dict[str, list] = {name: [] for name in PHASES}
        self.kills: Counter = Counter()

    def run(self, rng: random.Random) -> None:
        running = {place: self._begun(place) for place in (self.calm, self.killed)}
        began, kill, sample = time.monotonic(), _soon(rng, self._minutes), 0.0
        try:
            while running:
                now = time.monotonic() - began
                if now > 60 * (4 * self._minutes + 10):
                    raise Lost(f"after {now / 60:.0f} minutes a sweep is not at its end")
                if now >= kill and self.killed in running:
                    running[self.killed].kill()
                    if self._was_killed(self.killed, running.pop(self.killed).wait()):
                        self.kills[phase(self.killed)] += 1
                        running[self.killed] = self._begun(self.killed)
                        kill = now + _soon(rng, self._minutes)
                if now >= sample and self.calm in running:
                    taken = (now, *_memory(running[self.calm].pid))
                    self.samples[phase(self.calm)].append(taken)
                    sample += 60
                for place in [place for place, ran in running.items() if ran.poll() is not None]:
                    if self._was_killed(place, running.pop(place).returncode):
                        raise Lost(f"the sweep in {place.name} was killed by somebody else")
                time.sleep(0.2)
        finally:
            for ran in running.values():
                ran.kill()
                ran.wait()

    def _begun(self, place: Path) -> subprocess.Popen:
        place.mkdir(parents=True, exist_ok=True)
        with _printed(place).open("w") as printed:
            return _process(place, self._beats, BEAT, stderr=printed)

    def _was_killed(self, place: Path, code: int) -> bool:
        return was_killed(code, f"the sweep in {place.name}", _printed(place).read_text())


def growth(samples: list[tuple[float, float, float]]) -> str:
    """What (seconds, MB resident, MB at the most) say of a phase between its first two minutes, in
    which programs are compiled, and its last; Lost if memory or its peak grows in it.

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
    if grown > MOST_GROWTH * np.median(resident):
        raise Lost(f"memory grows: {words}")
    return words


def phase(place: Path) -> str:
    return PHASES[(place / "grid").exists()]


def _control(folder: Path) -> str:
    """Another seed has other bits, the same one has the same."""
    digests = []
    for number, seed in enumerate((0, 0, 1)):
        place = folder / f"control{number}"
        place.mkdir()
        with sized(6, seed):
            if code := _process(place, 6, 0.0, seed).wait():
                raise Lost(f"a short sweep ends with {code}")
            digests.append(sweep.end(place)[0])
    if digests[0] != digests[1] or digests[0] == digests[2]:
        raise Lost(f"digests of seeds 0, 0 and 1: {digests}")
    return "control: another seed, another digest"


def _soon(rng: random.Random, minutes: float) -> float:
    """Seconds to the next kill: one to five minutes of an hour; never so few that no process comes
    to its first save."""
    return rng.uniform(1, 5) * max(minutes, 20)


def _printed(place: Path) -> Path:
    """What the last process of a sweep has printed of its faults; beside its folder, whose files
    are counted."""
    return place.with_name(f"{place.name}.stderr")


def _process(
    place: Path, beats: int, seconds: float, seed: int = 0, stderr: IO[str] | None = None
) -> subprocess.Popen:
    words = [str(place), str(beats), str(seconds), str(seed)]
    return subprocess.Popen(
        [sys.executable, "-m", "tools.chaos.soak", *words], stderr=stderr, cwd=ROOT
    )


def _memory(pid: int) -> tuple[float, float]:  # MB
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    kilobytes = [fields.get(name, "nan kB").split()[0] for name in ("VmRSS", "VmHWM")]
    return float(kilobytes[0]) / 1024, float(kilobytes[1]) / 1024


def _cpu_of_children() -> float:
    """Processor seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    process.configure()
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    with sized(int(sys.argv[2]), int(sys.argv[4])):
        sweep.run(Path(sys.argv[1]), loop._SAVE_EVERY, Beat(float(sys.argv[3])))
