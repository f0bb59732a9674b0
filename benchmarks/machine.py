"""The machine: what it is, and which share of its cores other processes take meanwhile.

Only Linux tells (/proc); elsewhere the share is unknown, and a result says so.
"""

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
QUIET = 0.05  # of the cores: others may take so much
WIDTH = 2048  # of the square matrices whose product is timed
NUMBERS = 2**25  # of 4 bytes, copied
NORMALS = 2**22
RATES = ("GFLOP/s in a float32 product", "GB/s copied", "GB/s into new memory", "ns a normal")
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_KTHREADD = 2  # the parent of the kernel's threads
_BUSY = (0, 1, 2, 5, 6, 7)  # user, nice, system, irq, softirq, stolen: neither idle nor waiting


class Reading(NamedTuple):
    """Seconds at one moment: on the clock, of these cores, of the kernel's own threads, and of each
    process by its id."""

    clock: float
    busy: float
    kernel: float
    processes: dict[int, tuple[str, float]]


class LoadedError(RuntimeError):
    """Other processes took too much of the cores for a comparison to mean anything."""


def read(proc: Path = PROC) -> Reading | None:
    """The counters as they stand."""
    if not (proc / "stat").exists():
        return None
    names = {f"cpu{core}" for core in cores()}
    rows = [line.split() for line in (proc / "stat").read_text().splitlines()]
    busy = sum(int(row[1 + i]) for row in rows if row[0] in names for i in _BUSY)
    rows = [row for folder in proc.glob("[0-9]*") if (row := _process(folder))]
    kernel = sum(seconds for _, parent, _, seconds in rows if parent == _KTHREADD)
    processes = {pid: (name, s) for pid, parent, name, s in rows if parent != _KTHREADD}
    return Reading(time.monotonic(), busy / _TICK, kernel, processes)


def others(before: Reading, after: Reading, own: set[int]) -> tuple[float, str]:
    """The share of the cores that processes other than ``own`` took, and the busiest of them.

    Whoever is stopped takes nothing. The kernel's threads are nobody's: they serve us too.
    """
    spent = {
        pid: (name, seconds - before.processes.get(pid, (name, 0.0))[1])
        for pid, (name, seconds) in after.processes.items()
    }
    ours = sum(seconds for pid, (_, seconds) in spent.items() if pid in own)
    ours += after.kernel - before.kernel
    strangers = [row for pid, row in spent.items() if pid not in own]
    busiest = max(strangers, key=lambda row: row[1], default=("nobody", 0.0))[0]
    room = (after.clock - before.clock) * len(cores())
    return max(0.0, (after.busy - before.busy - ours) / room), busiest


def cores() -> set[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def rates(seconds: Sequence[float]) -> list[float]:
    """RATES, of the seconds that a product, two copies and a draw took (``limits``).

    A product is 2 w³ operations; a copy reads and writes.
    """
    product, copy, fresh, draw = seconds
    moved = 8 * NUMBERS / 1e9
    return [2 * WIDTH**3 / product / 1e9, moved / copy, moved / fresh, draw / NORMALS * 1e9]


def facts() -> dict[str, str]:
    """The machine in words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": _processor(),
        "cores used": str(len(cores())),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
    }


def _processor() -> str:
    """Model and family, for virtual machines hide the former, and the widest vectors."""
    path = PROC / "cpuinfo"
    rows = dict(
        (part.strip() for part in line.split(":", 1))
        for line in (path.read_text().splitlines() if path.exists() else [])
        if ":" in line
    )
    name = rows.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in rows:
        name += f", family {rows['cpu family']}, model {rows['model']}"
    widest = [v for v in ("avx512f", "avx2") if v in rows.get("flags", "").split()]
    return f"{name}, {widest[0]}" if widest else name


def _process(folder: Path) -> tuple[int, int, str, float] | None:
    """Id, parent, name and seconds of all threads of a process and of its children that have
    ended; None if it has just ended."""
    try:
        name, _, numbers = (folder / "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return None
    fields = numbers.split()
    return int(folder.name), int(fields[1]), name, sum(map(int, fields[11:15])) / _TICK
