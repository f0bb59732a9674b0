"""The run that is under way: where its parts are saved, and its progress bar.

``each`` and ``checkpoint`` work anywhere; outside of a run they save nothing and show nothing.
"""

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.files import write_file


@dataclass(frozen=True)
class Session:
    """The folder that keeps finished parts of a run, and the bar that shows them."""

    folder: Path | None = None
    progress: Any = None  # rich.progress.Progress


_current: ContextVar[Session] = ContextVar("session", default=Session())  # noqa: B039


@contextlib.contextmanager
def session(folder: Path, progress: Any = None) -> Iterator[None]:
    """Let ``each`` and ``checkpoint`` save into a folder while the context lasts."""
    token = _current.set(Session(folder, progress))
    try:
        yield
    finally:
        _current.reset(token)


def checkpoint(label: str) -> dict[str, Any]:
    """Return ``files`` and ``progress`` of ``lsa_lab.training.fit`` for a training of this run.

    ``fit(training, params, key, **lab.checkpoint("n = 4"))`` resumes where it was interrupted.
    """
    current = _current.get()
    if current.folder is None:
        return {}
    from lsa_lab.training import Files

    return {"files": Files(current.folder / f"{_word(label)}.ckpt"), "progress": current.progress}


def each(label: str, items: Sequence, function: Callable[[Any], Any]) -> list[Any]:
    """Return ``function(item)`` for every item; save each result, and resume after the last.

    A result is an array or a flat dictionary of arrays.
    """
    current, results, task = _current.get(), [], None
    if current.progress is not None:
        task = current.progress.add_task(label, total=len(items))
    for i, item in enumerate(items):
        path = current.folder and current.folder / f"{_word(label)}-{i}.npz"
        if path and path.exists():
            result = _read(path)
        else:
            result = function(item)
            if path:
                _save(path, result)
        results.append(result)
        if task is not None:
            current.progress.update(task, completed=i + 1)
    return results


def _save(path: Path, result: Any) -> None:
    named = result if isinstance(result, dict) else {"": result}
    content = io.BytesIO()
    arrays: Any = {f"_{name}": np.asarray(value) for name, value in named.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "biufcUS":  # others would be pickled, or not be read again
            what = f"{name[1:]!r} of {path.stem}" if name[1:] else path.stem
            raise TypeError(f"{what} is {array.dtype}: each saves numbers, truth values and text")
    np.savez(content, **arrays)
    write_file(path, content.getvalue())


def _read(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as stored:
        named = {name.removeprefix("_"): stored[name] for name in stored.files}
    return named[""] if named.keys() == {""} else named


def _word(label: str) -> str:
    return re.sub(r"[^\w.-]+", "_", label)
