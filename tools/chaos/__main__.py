"""``make chaos``: sweeps that are killed, disks that fail or lose their power, files that rot,
and words that nobody would write.

``python -m tools.chaos [PART...]`` does everything, or these parts; each prints what it
counted, and the first promise that is not kept ends it with status 1. The numbers are options.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from lsa_lab.harness.run import process

process.configure()

from lsa_lab.store.cache import cache
from tools.chaos import (
    damage,
    divergence,
    generated,
    interruption,
    kills,
    many,
    repeats,
    soak,
    whole_run,
    writers,
)
from tools.chaos.lost import Lost


def killed(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Processes of a sweep killed at random."""
    met = kills.kills(options.kills, folder, options.seed)
    yield from (f"{count:5} {what}" for what, count in sorted(met.items()))


def signalled(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """SIGINT and SIGTERM: seconds until all is saved."""
    waited = sorted(kills.signals(options.signals, folder, options.seed))
    if waited[-1] > 5:
        raise Lost(f"a process takes {waited[-1]:.1f} s to save and end")
    median, most = waited[len(waited) // 2], waited[-1]
    yield f"{len(waited):5} signals; {median:.2f} s to the end, at most {most:.2f}"


def interrupted(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Every failpoint of every writer, every full disk, every power cut."""
    for program in writers.PROGRAMS:
        yield f"{program.name}: {_interrupted(program, folder, options)}"
    for program in writers.CONTROLS:
        try:
            counts = _interrupted(program, folder, options)
        except Lost as lost:
            yield f"control, {program.name}: caught; {str(lost).replace(str(folder), '')[:90]}"
        else:
            raise Lost(f"control, {program.name}: {counts}, and nothing was caught")


def _interrupted(program: writers.Program, folder: Path, options: argparse.Namespace) -> str:
    place = folder / "writers"
    log, end = interruption.recorded(program, place)
    points = [number for _, number in interruption.failpoints(log)][:: options.every]
    for number in points:
        interruption.killed(program, place, end, number)
    full = range(0, len(log.calls), options.every)
    for number in full:
        interruption.failed(program, place, end, number)
    cuts = interruption.power_cuts(program, place, log, end, options.states, options.every)
    return f"{len(points)} failpoints, {len(full)} full disks, {cuts} states after a power cut"


def damaged(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Bits, lengths, ends and blocks of files that hold numbers."""
    total: Counter = Counter()
    for kind in damage.KINDS:
        flips = -(-options.flips // len(damage.KINDS))
        for way, counts in damage.outcomes(kind, folder, flips, options.every).items():
            words = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
            yield f"{kind.name}, {way}: {words}"
            total += counts
    if set(total) - {"refused", "the same"}:
        raise Lost(f"loads of damaged files: {dict(total)}")


def diverged(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """NaN and infinity in weights, data, gradient and loss; trainings that are healthy."""
    count = divergence.diverging(options.bad, folder, options.seed)
    yield f"{count:5} trainings, each with something not finite: step and leaf are named in all"
    count = sum(divergence.healthy(options.healthy, width) for width in (None, 8))
    yield f"{count:5} healthy trainings: no false alarm"


def repeated(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """The same training in fresh processes, chunks, groups and companies, on one core and two."""
    counts = repeats.repeated(options.processes)
    yield from (f"{count:5} {what}: one digest" for what, count in counts.items())


def soaked(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """A sweep of an hour under kills, and the memory of one that nobody disturbs."""
    yield from soak.soak(options.minutes, folder, options.seed)


def in_thousands(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """A grid of ten thousand cells, and a training of as many runs."""
    yield from many.many(options.cells, folder)


def misspelt(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Configurations and command lines that nobody would write."""
    with generated.nothing_runs(folder):
        for total in (
            generated.configs(options.configs, options.seed),
            generated.lines(options.lines, options.seed),
        ):
            yield from (f"{count:5} {end}" for end, count in sorted(total.items()))


def whole(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Processes of one experiment, from the command line to its folder of results."""
    met = whole_run.kills(options.whole, folder, options.seed)
    yield from (f"{count:5} {what}" for what, count in sorted(met.items()))


PARTS = {
    "killed": killed,
    "interrupted": interrupted,
    "damaged": damaged,
    "signalled": signalled,
    "misspelt": misspelt,
    "diverged": diverged,
    "repeated": repeated,
}
LONG = {"soaked": soaked, "many": in_thousands, "whole": whole}  # only where they are asked for


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS | LONG))
    parser.add_argument("--kills", type=int, default=100, help="processes of a sweep")
    parser.add_argument("--signals", type=int, default=20, help="to trainings")
    parser.add_argument("--flips", type=int, default=10_000, help="of single bits")
    parser.add_argument("--states", type=int, default=64, help="after one cut, at most")
    parser.add_argument("--configs", type=int, default=5000, help="misspelt, out of range")
    parser.add_argument("--lines", type=int, default=600, help="misspelt, of every command")
    parser.add_argument("--every", type=int, default=1, help="failpoint, length, state")
    parser.add_argument("--bad", type=int, default=50, help="steps at which NaN or infinity comes")
    parser.add_argument("--healthy", type=int, default=200, help="trainings")
    parser.add_argument("--processes", type=int, default=10, help="that repeat a training")
    parser.add_argument("--cells", type=int, default=10_000, help="of a grid")
    parser.add_argument("--whole", type=int, default=20, help="kills of a whole run")
    parser.add_argument("--minutes", type=float, default=60, help="of the soak")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    parts = PARTS | LONG
    if unknown := set(options.parts) - set(parts):
        parser.error(f"no part {unknown.pop()!r}: there are {', '.join(parts)}")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache().resolve() / "xla")  # of new processes
    with tempfile.TemporaryDirectory() as folder:
        for name in options.parts or PARTS:
            began = time.monotonic()
            print(f"{name}: {parts[name].__doc__}", flush=True)
            try:
                for line in parts[name](options, Path(folder) / name):
                    print(f"  {line}", flush=True)
            except Lost as lost:
                print(f"LOST: {lost}", file=sys.stderr)
                return 1
            print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
