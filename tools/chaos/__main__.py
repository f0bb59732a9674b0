"""``make chaos``: sweeps that are killed, disks that fill or lose their power, files that rot.

``python -m tools.chaos [PART...]`` does everything, or these parts; each prints what it counted,
and the first promise that is not kept ends it with status 1. The numbers are options.
"""

import argparse
import os
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from lsa_lab.harness.run import process

process.configure()

from lsa_lab.store.cache import cache
from tools.chaos import processes, writers
from tools.chaos.disk import Killed, Lost


def kill(options: Namespace, folder: Path) -> Iterator[str]:
    """Processes of a sweep killed at random."""
    yield from lines(processes.kill(options.kills, folder, options.seed))


def interrupt(options: Namespace, folder: Path) -> Iterator[str]:
    """Every failpoint of every writer, every full disk, every power cut; and every control."""
    every = options.every

    def try_program(program: writers.Program) -> str:
        log, end = writers.record(program, folder)
        points, full = writers.failpoints(log)[::every], range(0, 3 * len(log.calls), 3 * every)
        for place in points:
            writers.disturb(program, folder, end, place, Killed())
        for place in full:
            writers.disturb(program, folder, end, place, writers.FULL)
        cuts = writers.cut_power(program, folder, log, end, options.states, every)
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
    """Bits, lengths, ends and blocks of files that hold numbers."""
    total: Counter = Counter()
    for name, kind in writers.KINDS.items():
        flips = -(-options.flips // len(writers.KINDS))
        for way, counts in writers.outcomes(kind, folder, flips, options.every).items():
            yield f"{name}, {way}: {', '.join(lines(counts))}"
            total += counts
    if set(total) - {"refused", "the same"}:
        raise Lost(f"loads of damaged files: {dict(total)}")


def lines(counts: Counter) -> list[str]:
    return [f"{count} {what}" for what, count in sorted(counts.items())]


# The first forks processes, and before that nothing may be computed.
PARTS = {"killed": kill, "interrupted": interrupt, "damaged": damage}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--kills", type=int, default=100, help="processes of a sweep")
    parser.add_argument("--states", type=int, default=64, help="after one cut, at most")
    parser.add_argument("--every", type=int, default=1, help="failpoint, length, state")
    parser.add_argument("--flips", type=int, default=10_000, help="of single bits")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {unknown.pop()!r}: there are {', '.join(PARTS)}")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache().resolve() / "xla")  # of new processes
    for name, act in PARTS.items():
        if options.parts and name not in options.parts:
            continue
        began = time.monotonic()
        print(f"{name}: {act.__doc__}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                for line in act(options, Path(folder) / name):
                    print(f"  {line}", flush=True)
            except Lost as lost:
                print(f"LOST: {lost}", file=sys.stderr)
                return 1
        print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
