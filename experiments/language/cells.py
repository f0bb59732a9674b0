"""Cells of a grid, one after the other on the host: a run that is killed goes on where it was."""

import io
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

import numpy as np

from lsa_lab import results

Arrays = dict[str, np.ndarray]


def cells(
    places: Iterable[Hashable],
    compute: Callable[..., Arrays],
    checkpoints: Path | None = None,
    progress=None,
    label: str = "cells",
) -> dict[Hashable, Arrays]:
    """``compute(place)`` of every place, each kept in ``checkpoints`` as soon as it is there.

    A place is a word or a tuple of words and numbers, which names its file.
    """
    places = list(places)
    files = [checkpoints and Path(checkpoints) / f"{_name(place)}.npz" for place in places]
    done = sum(bool(file and file.exists()) for file in files)
    if progress is not None:
        bar = progress.add_task(label, total=len(places), completed=done)
    values = {}
    for place, file in zip(places, files, strict=True):
        if file and file.exists():
            values[place] = _read(file)
            continue
        values[place] = {name: np.asarray(x) for name, x in compute(place).items()}
        if file:
            _write(file, values[place])
        if progress is not None:
            progress.advance(bar)
    return values


def stack(values: dict[Hashable, Arrays], name: str, shape: tuple[int, ...]) -> np.ndarray:
    """One array of all cells, in their order, with the grid's axes in front."""
    rows = np.stack([cell[name] for cell in values.values()])
    return rows.reshape(*shape, *rows.shape[1:])


def _read(file: Path) -> Arrays:
    with np.load(file, allow_pickle=False) as kept:
        return dict(kept)


def _write(file: Path, values: Arrays) -> None:
    content = io.BytesIO()
    np.savez(content, **values)
    results.write(file, content.getvalue())


def _name(place: Hashable) -> str:
    parts = place if isinstance(place, tuple) else (place,)
    return "-".join(str(part).replace(" ", "_") for part in parts)
