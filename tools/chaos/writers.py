"""What writes files here, as small programs of promises, and two writers that are wrong.

A program goes from version 0 of what it keeps to version 1, 2, ..., and yields where one is safe:
whatever happens then, a reader is given that version or the next one.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import xarray as xr

from experiments.models import runs
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.harness.run import records
from lsa_lab.store import cells, checkpoints, grids, results, safe_files

FACTS = {"identity": "chaos"}
SPEC = Spec(Task(2, (4,)), Architecture(depth=1, heads=1), Recipe(4, 2, 0.1, seeds=2))


@dataclass(frozen=True)
class Program:
    """``steps`` goes on from whatever lies in the folder; ``read`` says which version that is,
    None for one that says of itself that it is not finished."""

    name: str
    prepare: Callable[[Path], Any]
    steps: Callable[[Path], Iterator[Any]]
    read: Callable[[Path], int | None]


def tree_of(version: int) -> dict[str, np.ndarray]:
    """Arrays of which every byte says which version they are."""
    return {"w": np.full((40, 30), version, np.float32), "step": np.int64(version)}


def version_of(arrays: dict[str, np.ndarray]) -> int:
    values = {int(x) for array in arrays.values() for x in np.unique(array)}
    assert len(values) == 1, f"versions {values} in one file"
    return values.pop()


def saving(name: str, file: str, save: Callable, load: Callable, first: bool) -> Program:
    """A file that is saved three times, with or without one before them."""

    def steps(folder: Path) -> Iterator[None]:
        for version in (1, 2, 3):
            save(folder / file, version)
            yield

    def read(folder: Path) -> int:
        return load(folder / file) if (folder / file).exists() or first else 0

    return Program(name, lambda folder: first and save(folder / file, 0), steps, read)


def save_checkpoint(path: Path, version: int) -> None:
    checkpoints.save(path, tree_of(version), FACTS)


def load_checkpoint(path: Path) -> int:
    return version_of(checkpoints.load(path, tree_of(0), FACTS))


def save_result(path: Path, version: int) -> None:
    rows = {"risk": (("run", "n"), np.full((4, 3), float(version)))}
    results.save(xr.Dataset(rows), path, config={"n": 3})


def load_result(path: Path) -> int:
    return version_of({"risk": results.load(path, config={"n": 3})["risk"].values})


def weights(version: int) -> runs.Runs:
    like, layout = runs._layout(SPEC, 0)
    arrays = {name: np.full(shape, version, kind) for name, (kind, shape) in layout.items()}
    leaves = [array for name, array in arrays.items() if name.startswith("params")]
    import jax

    return runs.Runs(SPEC, jax.tree.unflatten(like, leaves), None, arrays["loss"], arrays["taken"])


def save_weights(path: Path, version: int) -> None:
    runs.write(path, weights(version))


def load_weights(path: Path) -> int:
    import jax

    return version_of(dict(enumerate(jax.tree.leaves(runs.read(path, SPEC).params))))


def _cells() -> list[tuple[str, int]]:
    return [("cell", number) for number in range(4)]


def _grid(folder: Path) -> Iterator[None]:
    """Three of the four cells come into one file."""
    with mock.patch.object(cells, "TOGETHER", 3):
        for count in range(1, len(_cells()) + 1):
            here = _cells()[:count]
            grids.grid(here, lambda cell: {"row": np.arange(9) * cell[1]}, folder / "grid")
            yield


def _cells_kept(folder: Path) -> int:
    def fails(cell):
        raise LookupError

    for count in range(len(_cells()), 0, -1):
        try:
            rows = grids.grid(_cells()[:count], fails, folder / "grid")
        except LookupError:
            continue
        np.testing.assert_array_equal(rows["row"], np.outer(np.arange(count), np.arange(9)))
        return count
    return 0


def _fill(folder: Path, version: int) -> None:
    """What a run leaves, all of it of one version."""
    save_result(folder / "result.nc", version)
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


def _verdicts_beside_numbers(folder: Path) -> int | None:
    record, number = folder / "toy" / "config.json", load_result(folder / "toy" / "result.nc")
    if not record.exists():
        return None
    assert json.loads(record.read_text())["version"] == number, "verdicts of another run"
    return number


PROGRAMS = (
    saving("checkpoint", "fit.ckpt", save_checkpoint, load_checkpoint, True),
    saving("first checkpoint", "new/deep/fit.ckpt", save_checkpoint, load_checkpoint, False),
    saving("result", "result.nc", save_result, load_result, True),
    saving("first result", "new/result.nc", save_result, load_result, False),
    saving("weights", "toy.npz", save_weights, load_weights, True),
    Program("grid", lambda folder: None, _grid, _cells_kept),
    Program("run", lambda folder: _fill(folder / "toy", 0), _run, _verdicts_beside_numbers),
)


def _in_place(path: Path, version: int) -> None:
    path.write_bytes(checkpoints.packed(tree_of(version), FACTS))


def _without(name: str) -> Callable[[Path, int], None]:
    """``save_checkpoint`` with a sync left out, of the file or of its folder."""

    def save(path: Path, version: int) -> None:
        real, calls = os.fsync, []

        def fsync(handle: int) -> None:
            calls.append(handle)
            if (len(calls) == 1) != (name == "file"):
                real(handle)

        safe_files.os = SimpleNamespace(**{**vars(os), "fsync": fsync})
        try:
            save_checkpoint(path, version)
        finally:
            safe_files.os = os

    return save


# Each is wrong in one way, and has to be caught: the kills catch the first, the power cuts all.
CONTROLS = tuple(
    saving(name, "fit.ckpt", save, load_checkpoint, True)
    for name, save in (
        ("in place", _in_place),
        ("no fsync of the file", _without("file")),
        ("no fsync of the folder", _without("folder")),
    )
)
