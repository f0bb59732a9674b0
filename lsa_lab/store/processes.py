"""One computation in several processes: each does its share, and then every one has everything.

    with processes.use(processes.Folder(shared, index, count)):  # in each of ``count`` processes
        run = fit(training, params, keys)                # a share of the work, all of the runs

All processes make the same calls in the same order. A share is contiguous; what is gathered are
bytes, so that every process ends with the bits of one that did it all. The process that leads, the
first, is the only one that need print or write.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from lsa_lab.store import checkpoints, transports
from lsa_lab.store.transports import (
    Alone,
    Distributed,
    Folder,
    LostProcessError,
    NotBegunError,
    count,
    index,
    leads,
    use,
)

__all__ = ["Alone", "Distributed", "Folder", "LostProcessError", "NotBegunError", "count"]
__all__ += ["gather", "gather_contents", "index", "leads", "share", "use", "wait"]


def share(total: int, width: int = 1) -> range:
    """The rows, of ``total``, that are this process's to compute: whole groups of ``width``."""
    return _share(total, width, index(), count())


def _share(total: int, width: int, index: int, count: int) -> range:
    groups = -(-total // width)
    first, end = (min(groups * i // count * width, total) for i in (index, index + 1))
    return range(first, end)


def gather(rows: Any, total: int, width: int = 1, label: str = "") -> Any:
    """All rows: of every array [share, ...] the one [total, ...], the same in every process.

    ``rows`` is a pytree of arrays, its own share of which each process has. ``label`` says what
    is gathered: processes that do not gather the same at the same time are refused.
    """
    return _gathered(transports.current(), rows, total, width, label)


def gather_contents(contents: Sequence[bytes], label: str = "") -> list[bytes]:
    """The contents that all processes have, each any number of them, in the order of processes."""
    return _gathered_contents(transports.current(), contents, label)


def _gathered_contents(transport: Alone, contents: Sequence[bytes], label: str) -> list[bytes]:
    # Leaves come back by the order of their names: as texts, 10 stands before 2, and 09 does not.
    rows = {f"{i:09}": np.frombuffer(content, np.uint8) for i, content in enumerate(contents)}
    parts = transport.exchange(checkpoints.packed(rows, {"label": label}), label)
    gathered = []
    for process, part in enumerate(parts):
        saved, leaves = checkpoints.unpacked(part, f"process {process} of {transport.count}")
        if saved["label"] != label:
            raise ValueError(
                f"process {process} of {transport.count} gives {saved['label']!r} in place of "
                f"{label!r}: start all processes by the same command"
            )
        gathered += [leaf.tobytes() for leaf in leaves.values()]
    return gathered


def wait(label: str) -> None:
    """Go on when all processes have come here."""
    transports.current().exchange(b"", label)


def _gathered(transport: Alone, rows: Any, total: int, width: int, label: str) -> Any:
    if transport.count == 1:
        return jax.tree.map(np.asarray, rows)

    shares = [_share(total, width, process, transport.count) for process in range(transport.count)]

    def facts(share: range) -> checkpoints.Facts:
        return {"label": label, "total": total, "first": share.start, "end": share.stop}

    content = checkpoints.packed(rows, facts(shares[transport.index]))
    kinds = _kinds(checkpoints.unpacked(content, "this process")[1])
    parts = []
    for process, part in enumerate(transport.exchange(content, label)):
        name, share = f"process {process} of {transport.count}", shares[process]
        saved, leaves = checkpoints.unpacked(part, name)
        whole = all(len(leaf) == len(share) for leaf in leaves.values())
        if saved != facts(share) or _kinds(leaves) != kinds or not whole:
            raise ValueError(
                f"{name} gives rows {saved.get('first')} to {saved.get('end')} of "
                f"{saved.get('label')!r}, where {share.start} to {share.stop} of {label!r} are its "
                "share: start all processes by the same command"
            )
        parts.append(leaves)
    joined = [np.concatenate([part[name] for part in parts]) for name in kinds]
    return jax.tree.unflatten(jax.tree.structure(rows), joined)


def _kinds(leaves: dict[str, np.ndarray]) -> dict[str, tuple]:
    """Dtype and shape of each array but for its number of rows, which all shares have in common."""
    return {name: (leaf.dtype, leaf[:0].shape) for name, leaf in leaves.items()}
