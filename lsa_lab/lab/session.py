"""The run that is under way: where its parts are saved, and its progress display.

``compute_each`` and ``checkpoint`` work anywhere; outside a run they save and show nothing.
"""

import contextlib
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.files import write_file

# The folder that keeps finished parts of a run, and its rich.progress.Progress.
_current: ContextVar[tuple[Path | None, Any]] = ContextVar("session", default=(None, None))


@contextlib.contextmanager
def session(folder: Path, progress: Any = None) -> Iterator[None]:
    """Let ``compute_each`` and ``checkpoint`` save into a folder while the context lasts."""
    token = _current.set((folder, progress))
    try:
        yield
    finally:
        _current.reset(token)


def checkpoint(label: str) -> dict[str, Any]:
    """Return ``files`` and ``progress`` of ``lsa_lab.training.fit`` for a training of this run.

    ``fit(training, params, key, **lab.checkpoint("n = 4"))`` resumes where it was interrupted.
    """
    folder, progress = _current.get()
    if folder is None:
        return {}
    from lsa_lab.training import Files

    return {"files": Files(folder / f"{make_word(label)}.ckpt"), "progress": progress}


def compute_each(label: str, items: Sequence, function: Callable[[Any], Any]) -> list[Any]:
    """Return ``function(item)`` for every item; save each result, and resume after the last.

    A result is an array or a flat dictionary of arrays.
    """
    folder, progress = _current.get()
    paths = [folder and folder / f"{make_word(label)}-{i}.npz" for i in range(len(items))]
    saved = itertools.takewhile(lambda path: path and path.exists(), paths)
    results = [_read(path) for path in saved if path]
    if progress is not None:
        task = progress.add_task(label, total=len(items), completed=len(results))
    for i in range(len(results), len(items)):
        results.append(function(items[i]))
        if path := paths[i]:
            _save(path, results[-1])
        if progress is not None:
            progress.update(task, completed=i + 1)
    return results


def stack_rows(
    rows: Sequence[Mapping[str, Any]], dims: Mapping[str, Sequence[str]], shape: Sequence[int] = ()
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Return variables of a Dataset from what ``compute_each`` returned for a grid of items.

    The first of ``dims`` are those of the grid, whose ``shape`` is by default (len(rows),).
    """
    stacked = {name: np.stack([row[name] for row in rows]) for name in dims}
    return {
        name: (tuple(dims[name]), values.reshape(*(shape or values.shape[:1]), *values.shape[1:]))
        for name, values in stacked.items()
    }


def _save(path: Path, result: Any) -> None:
    named = result if isinstance(result, dict) else {"": result}
    content, arrays = io.BytesIO(), {f"_{key}": np.asarray(value) for key, value in named.items()}
    np.savez(content, allow_pickle=False, **arrays)
    write_file(path, content.getvalue())


def _read(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as stored:
        named = {name.removeprefix("_"): stored[name] for name in stored.files}
    return named[""] if named.keys() == {""} else named


def make_word(label: str) -> str:
    """Return a label as a part of a file's name."""
    return re.sub(r"[^\w.-]+", "_", label)
