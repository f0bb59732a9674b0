"""``make chaos``: sweeps that are killed, disks that fail or lose their power, files that rot,
and words that nobody would write.

``python -m tools.chaos [PART...]`` does everything, or these parts, each in a process of its own;
each prints what it counted, and the first promise that is not kept ends it with status 1. The
numbers are options.
"""

import argparse
import os
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from lsa_lab.harness.run import process

process.configure()

from lsa_lab.store.cache import cache
from tools.chaos import divergence, generated, processes, writers
from tools.chaos.disk import Lost


def interrupt(options: Namespace, folder: Path) -> Iterator[str]:
    """Every writer and every control, at every failpoint and full disk, after every power cut."""
    every, place = options.every, folder / "writers"

    def try_program(program: writers.Program) -> str:
        log, end = writers.record(program, place)
        points, full = writers.failpoints(log)[::every], range(0, len(log.calls), every)
        for number in points:
            writers.kill(program, place, end, number)
        for number in full:
            writers.fill_disk(program, place, end, number)
        cuts = writers.cut_power(program, place, log, end, options.states, every)
        return f"{len(points)} failpoints, {len(full)} full disks, {cuts} states after a power cut"

    for program in writers.PROGRAMS:
        yield f"{program.name}: {try_program(program)}"
    for program in writers.CONTROLS:
        try:
            counts = try_program(program)
        except Lost as lost:
            yield f"control, {program.name}: caught; {str(lost).replace(str(folder), '')[:90]}"
        else:
            raise Lost(f"control, {program.name}: {counts}, and nothing was caught")


def damage(options: Namespace, folder: Path) -> Iterator[str]:
    total: Counter = Counter()
    for name, kind in writers.KINDS.items():
        flips = -(-options.flips // len(writers.KINDS))
        for way, counts in writers.outcomes(kind, folder, flips, options.every).items():
            yield f"{name}, {way}: {', '.join(lines(counts))}"
            total += counts
    if set(total) - {"refused", "the same"}:
        raise Lost(f"loads of damaged files: {dict(total)}")


def send_signals(options: Namespace, folder: Path) -> Iterator[str]:
    waited = sorted(processes.send_signals(options.signals, folder, options.seed))
    median, most = waited[len(waited) // 2], waited[-1]
    yield f"{len(waited):5} signals; {median:.2f} s to the end, at most {most:.2f}"
    if most > 5:
        raise Lost(f"a process takes {most:.1f} s to save and end")


def diverge(options: Namespace, folder: Path) -> Iterator[str]:
    count = divergence.diverge(options.bad, folder, options.seed)
    yield f"{count:5} trainings, each with something not finite: step and leaf are named in all"
    count = sum(divergence.train_healthy(options.healthy, width) for width in (None, 8))
    yield f"{count:5} healthy trainings: no false alarm"


def misspell(options: Namespace, folder: Path) -> Iterator[str]:
    with generated.nothing_runs(folder):
        yield from lines(generated.configs(options.configs, options.seed))
        yield from lines(generated.lines(options.lines, options.seed))


def lines(counts: Counter) -> list[str]:
    return [f"{count} {what}" for what, count in sorted(counts.items())]


class Part(NamedTuple):
    """What it does, the lines that it prints, and its numbers, as {option: (usual, of what)}."""

    about: str
    act: Callable[[Namespace, Path], Iterator[str] | list[str]]
    numbers: dict[str, tuple[float, str]]
    long: bool = False  # done only where it is asked for


PARTS = {
    "killed": Part(
        "processes of a sweep killed at random",
        lambda o, folder: lines(processes.kill(processes.SWEEP, o.kills, folder, o.seed)),
        {"kills": (100, "processes of a sweep")},
    ),
    "interrupted": Part(
        "every failpoint of every writer, every full disk, every power cut",
        interrupt,
        {"states": (64, "after one cut, at most"), "every": (1, "failpoint, length, state")},
    ),
    "damaged": Part(
        "bits, lengths, ends and blocks of files that hold numbers",
        damage,
        {"flips": (10_000, "of single bits")},
    ),
    "signalled": Part(
        "SIGINT and SIGTERM: seconds until all is saved",
        send_signals,
        {"signals": (20, "to trainings")},
    ),
    "misspelt": Part(
        "configurations and command lines that nobody would write",
        misspell,
        {"configs": (5000, "misspelt, out of range"), "lines": (600, "misspelt, of every command")},
    ),
    "diverged": Part(
        "NaN and infinity in weights, data, gradient and loss; trainings that are healthy",
        diverge,
        {"bad": (50, "steps at which NaN or infinity comes"), "healthy": (200, "trainings")},
    ),
    "repeated": Part(
        "the same training in fresh processes, chunks, groups and companies, on one core and two",
        lambda o, folder: lines(processes.repeat(o.processes, folder)),
        {"processes": (10, "that repeat a training")},
    ),
    "soaked": Part(
        "the memory of a long sweep that nobody disturbs, and its bits under a dozen kills",
        lambda o, folder: processes.soak(o.steps, 12, folder, o.seed),
        {"steps": (20_000, "of the soak's training")},
        long=True,
    ),
    "many": Part(
        "a grid of ten thousand cells, and a training of as many runs",
        lambda o, folder: processes.many(o.cells, folder),
        {"cells": (10_000, "of a grid")},
        long=True,
    ),
    "whole": Part(
        "processes of one experiment, from the command line to its folder of results",
        lambda o, folder: lines(processes.kill(processes.RUN, o.whole, folder, o.seed)),
        {"whole": (20, "kills of a whole run")},
        long=True,
    ),
}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    for part in PARTS.values():
        for name, (usual, of_what) in part.numbers.items():
            parser.add_argument(f"--{name}", type=type(usual), default=usual, help=of_what)
    options = parser.parse_args(words)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {unknown.pop()!r}: there are {', '.join(PARTS)}")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache().resolve() / "xla")  # of new processes
    with tempfile.TemporaryDirectory() as folder:
        for name in options.parts or [name for name, part in PARTS.items() if not part.long]:
            began = time.monotonic()
            print(f"{name}: {PARTS[name].about}", flush=True)
            pid = processes.fork(lambda name=name: _do(PARTS[name], options, Path(folder) / name))
            if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
                return 1
            print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return 0


def _do(part: Part, options: Namespace, folder: Path) -> None:
    try:
        for line in part.act(options, folder):
            print(f"  {line}", flush=True)
    except Lost as lost:
        print(f"LOST: {lost}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
