"""What writes files here, as small programs of promises, and what is done to them: they are killed
at every call, their disk is full from any call on or loses its power, their files rot.

A program goes from version 0 of what it keeps to version 1, 2, ..., and yields where one is safe:
whatever happens then, a reader is given that version or the next one.
"""

import contextlib
import errno
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import jax
import numpy as np
import xarray as xr

from experiments.models import runs
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.harness.run import records
from lsa_lab.store import cells, checkpoints, grids, results, safe_files
from tools.chaos.disk import Call, Killed, Log, Lost, crash_states, lay, tree, watch

FACTS = {"identity": "chaos"}
SPEC = Spec(Task(2, (4,)), Architecture(depth=1, heads=1), Recipe(4, 2, 0.1, seeds=2))
FULL = OSError(errno.ENOSPC, "No space left on device")
_FAILING = ("create", "write", "fsync", "fsync folder", "rename", "mkdir")


@dataclass(frozen=True)
class Program:
    """``steps`` goes on from whatever lies in the folder; ``read`` says which version that is,
    None for one that says of itself that it is not finished."""

    name: str
    prepare: Callable[[Path], Any]
    steps: Callable[[Path], Iterator[Any]]
    read: Callable[[Path], int | None]

    def contents(self, folder: Path) -> tuple:
        """The last version, and the names of all files: nothing is left over."""
        return self.read(folder), frozenset(tree(folder))


@dataclass(frozen=True)
class Kind:
    """A kind of file that holds numbers: how it is written, and the arrays that it gives back."""

    file: str
    save: Callable[[Path, int], Any]
    load: Callable[[Path], Any]

    def version(self, path: Path) -> int:
        """The one that every number of the file says."""
        values = {int(x) for leaf in jax.tree.leaves(self.load(path)) for x in np.unique(leaf)}
        assert len(values) == 1, f"versions {values} in one file"
        return values.pop()

    def bytes(self, path: Path) -> bytes:
        return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(self.load(path)))

    def program(self, name: str, first: bool = True) -> Program:
        """The file is saved three times, with or without one before them."""
        file = self.file if first else f"new/deep/{self.file}"

        def steps(folder: Path) -> Iterator[None]:
            for version in (1, 2, 3):
                self.save(folder / file, version)
                yield

        def read(folder: Path) -> int:
            return self.version(folder / file) if (folder / file).exists() or first else 0

        return Program(name, lambda folder: first and self.save(folder / file, 0), steps, read)


def arrays_of(version: int) -> dict[str, np.ndarray]:
    """Arrays of which every byte says which version they are."""
    return {"w": np.full((40, 30), version, np.float32), "step": np.int64(version)}


def _weights(version: int) -> runs.Runs:
    like, layout = runs._layout(SPEC, 0)
    arrays = {name: np.full(shape, version, kind) for name, (kind, shape) in layout.items()}
    leaves = [array for name, array in arrays.items() if name.startswith("params")]
    return runs.Runs(SPEC, jax.tree.unflatten(like, leaves), None, arrays["loss"], arrays["taken"])


def _read_weights(path: Path) -> tuple:
    read = runs.read(path, SPEC)
    return read.params, read.loss, read.taken, read.parts


def _result(version: int) -> xr.Dataset:
    return xr.Dataset({"risk": (("run", "n"), np.full((4, 3), float(version)))})


CHECKPOINT = Kind(
    "fit.ckpt",
    lambda path, version: checkpoints.save(path, arrays_of(version), FACTS),
    lambda path: checkpoints.load(path, arrays_of(0), FACTS),
)
RESULT = Kind(
    "result.nc",
    lambda path, version: results.save(_result(version), path, config={"n": 3}),
    lambda path: results.load(path, config={"n": 3})["risk"].values,
)
WEIGHTS = Kind("toy.npz", lambda path, version: runs.write(path, _weights(version)), _read_weights)
KINDS = {"checkpoint": CHECKPOINT, "result": RESULT, "weights": WEIGHTS}


def _grid(folder: Path) -> Iterator[None]:
    """Three of the four cells come into one file."""
    with mock.patch.object(cells, "TOGETHER", 3):
        for count in range(1, 5):
            row = lambda cell: {"row": np.arange(9) * cell[1]}  # noqa: E731
            grids.grid([("cell", number) for number in range(count)], row, folder / "grid")
            yield


def _count_cells(folder: Path) -> int:
    def fail(cell):
        raise LookupError

    for count in range(4, 0, -1):
        try:
            rows = grids.grid([("cell", number) for number in range(count)], fail, folder / "grid")
        except LookupError:
            continue
        np.testing.assert_array_equal(rows["row"], np.outer(np.arange(count), np.arange(9)))
        return count
    return 0


def _fill(folder: Path, version: int) -> None:
    """What a run leaves, all of it of one version."""
    RESULT.save(folder / "result.nc", version)
    results.write(folder / "caption.txt", b"of every version")
    results.write(folder / "summary.png", b"%d" % version * 100)
    records.write(folder, {"version": version})


def _run(folder: Path) -> Iterator[None]:
    """A run that has computed: its files lie beside its folder before they go into it."""
    shutil.rmtree(folder / ".toy.new", ignore_errors=True)
    _fill(folder / ".toy.new", 1)
    files = sorted((folder / ".toy.new").iterdir(), key=lambda path: path.name == "config.json")
    safe_files.write_together({folder / "toy" / path.name: path.read_bytes() for path in files})
    shutil.rmtree(folder / ".toy.new")
    yield


def _read_run(folder: Path) -> int | None:
    record, number = folder / "toy" / "config.json", RESULT.version(folder / "toy" / "result.nc")
    if not record.exists():
        return None
    assert json.loads(record.read_text())["version"] == number, "verdicts of another run"
    return number


PROGRAMS = (
    CHECKPOINT.program("checkpoint"),
    CHECKPOINT.program("first checkpoint", first=False),
    RESULT.program("result"),
    RESULT.program("first result", first=False),
    WEIGHTS.program("weights"),
    Program("grid", lambda folder: None, _grid, _count_cells),
    Program("run", lambda folder: _fill(folder / "toy", 0), _run, _read_run),
)


def _skip_sync(name: str) -> Kind:
    """A checkpoint that is saved with a sync left out, of the file or of its folder."""

    def save(path: Path, version: int) -> None:
        real, calls = os.fsync, []

        def fsync(handle: int) -> None:
            calls.append(handle)
            if (len(calls) == 1) != (name == "file"):
                real(handle)

        with mock.patch.object(safe_files, "os", SimpleNamespace(**{**vars(os), "fsync": fsync})):
            CHECKPOINT.save(path, version)

    return Kind("fit.ckpt", save, CHECKPOINT.load)


_IN_PLACE = Kind(
    "fit.ckpt",
    lambda path, version: path.write_bytes(checkpoints.packed(arrays_of(version), FACTS)),
    CHECKPOINT.load,
)
# Each is wrong in one way, and has to be caught: the kills catch the first, the power cuts all.
CONTROLS = (
    _IN_PLACE.program("in place"),
    _skip_sync("file").program("no fsync of the file"),
    _skip_sync("folder").program("no fsync of the folder"),
)


def record(program: Program, folder: Path) -> tuple[Log, tuple]:
    """The calls of a program that nobody disturbs, and what it ends with."""
    program.prepare(empty(folder))
    log = Log(folder, tree(folder))
    with watch(folder, log.see):
        for _ in program.steps(folder):
            log.promise()
    return log, program.contents(folder)


def failpoints(log: Log) -> list[int]:
    """Each place where a program can be killed, of three moments a call: before and after each
    call, and in the midst of a write."""
    kinds = [call.kind for call in log.calls for _ in range(3)]
    return [place for place, kind in enumerate(kinds) if place % 3 != 1 or kind == "write"]


def disturb(
    program: Program, folder: Path, end: tuple, place: int, error: OSError | Killed
) -> None:
    """Kill the program at a failpoint, or fill its disk, so that it ends with OSError, from there
    on; read what is there, and let it run again to its end."""
    count, kept = 0, 0

    def see(moment: str, call: Call) -> None:
        nonlocal count
        count += 1
        fails = isinstance(error, Killed) or (moment == "during" and call.kind in _FAILING)
        if count > place and fails:
            raise error

    program.prepare(empty(folder))
    with contextlib.suppress(type(error)), watch(folder, see):
        for _ in program.steps(folder):
            kept += 1
    left = [path.name for path in folder.rglob("*.tmp")]
    if left and isinstance(error, OSError):
        raise Lost(f"{program.name}: {left} stays when the disk is full")
    check(program, folder, kept, end)


def cut_power(
    program: Program, folder: Path, log: Log, end: tuple, most: int, every: int = 1
) -> int:
    """The program after every state, or every so manieth, that a power cut leaves; their number."""
    states = list(crash_states(log, most))[::every]
    for cut, state in states:
        lay(state, empty(folder))
        check(program, folder, sum(promise <= cut for promise in log.promises), end)
    return len(states)


def check(program: Program, folder: Path, kept: int, end: tuple) -> None:
    """Raise Lost unless the last version that was promised, or the next one, is there, and the
    program, begun again, ends with what it ends with when nobody disturbs it."""
    try:
        version = program.read(folder)
    except (ValueError, OSError, AssertionError) as error:
        raise Lost(f"{program.name}: {kept} were promised, and {error}") from error
    if version is not None and version not in (kept, kept + 1):
        raise Lost(f"{program.name}: {kept} were promised, and version {version} is there")
    for _ in program.steps(folder):
        pass
    if program.contents(folder) != end:
        raise Lost(f"{program.name}: other contents than without the end")


def damage(content: bytes, other: bytes, flips: int, every: int = 1) -> dict[str, Iterator[bytes]]:
    """A file's bytes damaged: so many bits turned over by lot, or all there are; cut at each so
    manieth length, or with zeros from there on, as a disk leaves what it never wrote; with a block
    of another file of its kind, or two blocks exchanged."""

    def flip() -> Iterator[bytes]:
        bits, place = 8 * len(content), random.Random(0)
        for bit in place.sample(range(bits), flips) if flips < bits else range(bits):
            damaged = bytearray(content)
            damaged[bit // 8] ^= 1 << bit % 8
            yield bytes(damaged)

    def splice() -> Iterator[bytes]:
        for start in range(0, len(content), 512):
            first, block, after = content[:start], content[start : start + 512], start + 512
            yield first + other[start:after] + content[after:]
            yield first + content[after : after + 512] + block + content[after + 512 :]

    short = range(0, len(content), every)
    return {
        "bits flipped": flip(),
        "cut short": (content[:length] for length in short),
        "zeros at the end": (content[:length].ljust(len(content), b"\0") for length in short),
        "blocks exchanged": splice(),
    }


def outcomes(kind: Kind, folder: Path, flips: int, every: int = 1) -> dict[str, Counter]:
    """What became of loads of damaged files of a kind: refused by ValueError, the only refusal that
    a caller looks for, the same, wrong, which gives other numbers and says nothing, or raw."""
    path, other = empty(folder) / kind.file, folder / f"other {kind.file}"
    kind.save(path, 1), kind.save(other, 2)
    content, expected = path.read_bytes(), kind.bytes(path)

    def outcome(damaged: bytes) -> str:
        path.write_bytes(damaged)
        try:
            return "the same" if kind.bytes(path) == expected else "wrong"
        except ValueError:
            return "refused"
        except Exception as error:
            return f"raw {type(error).__name__}"

    ways = damage(content, other.read_bytes(), flips, every)
    return {way: Counter(outcome(x) for x in each if x != content) for way, each in ways.items()}


def empty(folder: Path) -> Path:
    """The folder, with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
