"""Cells of a grid, computed one after the other, each kept as soon as it is computed.

    cells = [clipping.Edit(layer, "mlp", rate) for layer in range(30) for rate in (0.5, 0.9)]
    scores = grid(cells, judge, folder, facts={"weights": checkpoints.digest(params)})

For cells that take seconds or minutes; what is quicker belongs into one program. A hundred cells
that follow each other lie in one file once they are all computed.
"""

import dataclasses
import hashlib
import json
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from lsa_lab.store import checkpoints, processes, provenance
from lsa_lab.store.cells import Cells, groups


def grid(
    cells: Sequence[Any],
    judge: Callable[[Any], Mapping[str, ArrayLike]],
    folder: str | Path,
    *,
    facts: Mapping[str, str | int] | None = None,
    progress: Callable[[int, int], Any] | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> dict[str, np.ndarray]:  # each [C, ...], in the order of the cells
    """judge(cell) of every cell, by the names that it gives its arrays.

    A cell is a dataclass, a dict or a tuple of plain values; equal ones are computed once. What
    judge returns depends on the cell and on nothing that happened before: then the same call,
    repeated after any end, goes on where it stood, to the same numbers. ``facts`` are what the
    numbers rest on beside the cell and this process's arithmetic (versions, device, flags); a
    folder with others is refused. ``progress(done, all)`` is called at the start and after each
    cell. Arrays that a device is still busy with are kept when the next cell is begun: no device
    waits for the file of the cell before. Several ``devices``, this process's GPUs or TPUs unless
    others are given, share the cells, a thread for each: judge uses its device by default, and
    weights that lie on another are copied by every call. Processes that ``store.processes`` joins
    share the cells, and all of them return the same; the first reports on its share.
    """
    if not cells:
        raise ValueError("no cells: a grid has at least one")
    names = [_words(cell) for cell in cells]
    by_name = dict(zip(names, cells, strict=True))
    for name, cell in zip(names, cells, strict=True):
        if dataclasses.is_dataclass(cell) and type(cell) is not type(by_name[name]):
            kinds = f"{type(cell).__name__} and {type(by_name[name]).__name__}"
            raise ValueError(f"cells of {kinds} are both {name}: give one of them another field")
    rests_on = provenance.arithmetic() | dict(facts or {})
    share = processes.share(len(by_name))
    mine = list(by_name)[share.start : share.stop]
    store = Cells(folder, mine)
    waiting = {name: by_name[name] for name in mine if name not in store}
    group_of = {name: group for group in groups(mine) for name in group}
    for group in groups(mine):
        store.gather(group)
    done = len(mine) - len(waiting)
    report = progress if progress and processes.leads() else lambda done, all_cells: None
    report(done, len(mine))
    with processes.use(processes.Alone()):  # a cell is computed by this process alone
        ahead: list[tuple[str, Mapping[str, ArrayLike]]] = []  # begun and not yet kept, at most one

        def keep() -> None:
            nonlocal done
            while ahead:
                name, answer = ahead.pop()
                arrays = {key: np.asarray(value) for key, value in answer.items()}
                if not all(key.isidentifier() for key in arrays):
                    listed = ", ".join(arrays)
                    raise ValueError(f"judge calls its arrays {listed}: give them plain names")
                store.keep({name: checkpoints.packed(arrays, rests_on | {"cell": name})})
                store.gather(group_of[name])
                done += 1
                report(done, len(mine))

        try:
            for name, answer in _judged(waiting, judge, devices or _accelerators()):
                keep()
                ahead.append((name, answer))
                if all(_is_ready(value) for value in answer.values()):
                    keep()
        finally:
            keep()
    if processes.count() > 1:
        label = hashlib.sha256(json.dumps([names, rests_on], sort_keys=True).encode()).hexdigest()
        contents = processes.gather_contents(store.contents(mine), label[:32])
        store = Cells(folder, by_name)  # with those of processes that share the disk
        store.keep(dict(zip(by_name, contents, strict=True)))
    rows = {name: store.read(name, rests_on | {"cell": name}) for name in by_name}
    return {key: np.stack([rows[name][key] for name in names]) for key in rows[names[0]]}


def _accelerators() -> Sequence[jax.Device]:
    """The devices of this process, of which a CPU's count as one: factorisations that run at the
    same time can wait for each other for ever there (jaxlib 0.10)."""
    local = jax.local_devices()
    return local[:1] if local[0].platform == "cpu" else local


def _judged(
    cells: Mapping[str, Any],
    judge: Callable[[Any], Mapping[str, ArrayLike]],
    devices: Sequence[jax.Device],
) -> Iterator[tuple[str, Mapping[str, ArrayLike]]]:
    """The answers by name, in the order in which they come; cells that are under way when one
    breaks end first, and are judged again by the next call."""
    if len(devices) == 1:
        yield from ((name, judge(cell)) for name, cell in cells.items())
        return
    free: queue.SimpleQueue[jax.Device] = queue.SimpleQueue()
    for device in devices:
        free.put(device)

    def judge_on_one(cell: Any) -> dict[str, np.ndarray]:
        device = free.get()
        try:
            with jax.default_device(device):
                return {key: np.asarray(value) for key, value in judge(cell).items()}
        finally:
            free.put(device)

    with ThreadPoolExecutor(len(devices)) as pool:
        under_way = {pool.submit(judge_on_one, cell): name for name, cell in cells.items()}
        try:
            for done in as_completed(under_way):
                yield under_way[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _is_ready(value: ArrayLike) -> bool:
    """Whether no device is busy with it."""
    ready = getattr(value, "is_ready", None)
    return ready is None or ready()


def _words(cell: Any) -> str:
    """A cell in JSON, by which it is known."""
    is_value = dataclasses.is_dataclass(cell) and not isinstance(cell, type)
    plain = dataclasses.asdict(cell) if is_value else cell
    return json.dumps(plain, sort_keys=True, allow_nan=False, default=lambda number: number.item())
