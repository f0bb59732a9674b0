"""Cells of a grid as a run of an experiment has them: a bar, and a folder from which it goes on."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.store.grids import grid


def cells(
    places: Iterable[Any],
    judge: Callable[[Any], Mapping[str, Any]],
    folder: Path | None = None,
    progress=None,
    label: str = "cells",
) -> dict[str, np.ndarray]:  # each [C, ...]
    """``grid`` with a bar of the harness; without a folder nothing is kept."""
    if folder is None:
        with tempfile.TemporaryDirectory() as passing:
            return cells(places, judge, Path(passing), progress, label)
    if progress is None:
        return grid(list(places), judge, folder)
    bar = progress.add_task(label)

    def report(done: int, every: int) -> None:
        progress.update(bar, completed=done, total=every)

    return grid(list(places), judge, folder, progress=report)
