"""Cells of a grid, computed one after the other, each kept before the next is begun.

    cells = [clipping.Edit(layer, "mlp", rate) for layer in range(30) for rate in (0.5, 0.9)]
    scores = grid(cells, judge, folder, facts={"weights": checkpoints.digest(params)})

For cells that take seconds or minutes; what is quicker belongs into one program.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lsa_lab import checkpoints


def grid(
    cells: Sequence[Any],
    judge: Callable[[Any], Mapping[str, ArrayLike]],
    folder: str | Path,
    *,
    facts: Mapping[str, str | int] | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> dict[str, np.ndarray]:  # each [C, ...], in the order of the cells
    """judge(cell) of every cell, by the names that it gives its arrays.

    A cell is a dataclass, a dict or a tuple of plain values; equal ones are computed once. What
    judge returns depends on the cell and on nothing that happened before: then the same call,
    repeated after any end, goes on where it stood, to the same numbers. ``facts`` are what the
    numbers rest on beside the cell; a folder with others is refused. ``progress(done, all)`` is
    called at the start and after each cell.
    """
    if not cells:
        raise ValueError("no cells: a grid has at least one")
    names = [_words(cell) for cell in cells]
    files = {name: Path(folder) / f"{_digest(name)}.cell" for name in names}
    waiting = {name: c for name, c in zip(names, cells, strict=True) if not files[name].exists()}
    rests_on = dict(facts or {})
    done = len(files) - len(waiting)
    report = progress or (lambda done, all_cells: None)
    report(done, len(files))
    for name, cell in waiting.items():
        arrays = {key: np.asarray(value) for key, value in judge(cell).items()}
        if not all(key.isidentifier() for key in arrays):
            raise ValueError(f"judge calls its arrays {', '.join(arrays)}: give them plain names")
        checkpoints.save(files[name], arrays, rests_on | {"cell": name})
        done += 1
        report(done, len(files))
    rows = {name: _read(path, rests_on | {"cell": name}) for name, path in files.items()}
    return {key: np.stack([rows[name][key] for name in names]) for key in rows[names[0]]}


def _read(path: Path, facts: checkpoints.Facts) -> dict[str, np.ndarray]:
    return {name[2:-2]: array for name, array in checkpoints.read(path, facts).items()}  # ['name']


def _words(cell: Any) -> str:
    """A cell in JSON, by which it is known."""
    is_value = dataclasses.is_dataclass(cell) and not isinstance(cell, type)
    plain = dataclasses.asdict(cell) if is_value else cell
    return json.dumps(plain, sort_keys=True, allow_nan=False, default=lambda number: number.item())


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]
