"""Every state in which a power cut may leave a disk, from the log of the calls that it was given.

What POSIX promises, and no more: the bytes of a file last once it was synced, and the entries of a
folder once the folder was. Until then each entry that was added, moved or removed may have reached
the disk or not, in any order; and of the bytes all, none, the first half, or as many zeros.
"""

import hashlib
import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.chaos.calls import Call

_TAILS = ("all", "none", "half", "zeros")  # what is there of bytes that were not synced
Tree = dict[str, bytes | None]  # the bytes of each file by its path below the root; None: a folder


@dataclass
class Log:
    """The calls below a folder, and after how many of them each promise was given."""

    root: Path
    start: Tree
    calls: list[Call] = field(default_factory=list)
    promises: list[int] = field(default_factory=list)

    def see(self, moment: str, call: Call) -> None:
        if moment == "after":
            self.calls.append(call)

    def promise(self) -> None:
        """What was written is to last from here on."""
        self.promises.append(len(self.calls))

    def kept(self, cut: int) -> int:
        """How many promises were given before a cut."""
        return sum(promise <= cut for promise in self.promises)


def tree(root: Path) -> Tree:
    """What lies below a folder."""
    paths = sorted(root.rglob("*"))
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in paths
    }


def lay(state: Tree, root: Path) -> None:
    """The state as a folder, which is empty or not there."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in sorted(state.items()):
        if content is None:
            (root / name).mkdir(exist_ok=True)
        else:
            (root / name).write_bytes(content)


def crash_states(log: Log, most: int, seed: int = 0) -> Iterator[tuple[int, Tree]]:
    """Each state after a cut behind each number of calls, at most so many of one cut, and the cut;
    no state of one cut twice."""
    rng = random.Random(seed)
    for cut in range(len(log.calls) + 1):
        disk = _Disk(log, cut)
        seen = set()
        for choice in disk.choices(most, rng):
            state = disk.state(*choice)
            if (digest := _digest(state)) not in seen:
                seen.add(digest)
                yield cut, state


class _Disk:
    """What the calls before a cut have changed, and how much of that is certain."""

    def __init__(self, log: Log, cut: int):
        self.root = os.path.realpath(log.root)
        self.files: list[tuple[bytes, bytes]] = []  # as synced, as written
        self.entries: list[tuple[str, dict[str, int | None]]] = []  # folder, changes of names
        self.now: dict[str, int | None] = {}  # None: a folder
        for name, content in log.start.items():
            self.now[name] = None if content is None else self._file(content)
        self.start = dict(self.now)
        self.lasting = 0
        self.certain: set[int] = set()  # of the changes
        for call in log.calls[:cut]:
            self._apply(call)

    def _file(self, content: bytes = b"") -> int:
        self.files.append((content, content))
        return len(self.files) - 1

    def _name(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self.root)

    def _apply(self, call: Call) -> None:
        name = self._name(call.path)
        folder = os.path.dirname(name)
        number = self.now.get(name)
        if call.kind == "create":
            self._entry(folder, {name: self._file()})
        elif call.kind == "mkdir":
            self._entry(folder, {name: None})
        elif call.kind in ("unlink", "rmdir"):
            self._entry(folder, {name: -1})
        elif call.kind == "rename":
            self._entry(folder, {self._name(call.to): number, name: -1})
        elif call.kind == "fsync folder":
            here = "" if name == "." else name
            self.certain |= {i for i, (where, _) in enumerate(self.entries) if where == here}
        elif number is not None:  # of a file that has lost its name nothing is left anyway
            synced, written = self.files[number]
            if call.kind == "fsync":
                synced = written
            elif call.kind == "truncate":
                written = b""
            elif call.kind == "write":
                before = written[: call.offset].ljust(call.offset, b"\0")
                written = before + call.data + written[call.offset + len(call.data) :]
            self.files[number] = synced, written

    def _entry(self, folder: str, names: dict[str, int | None]) -> None:
        self.entries.append((folder, names))
        for name, number in names.items():
            self.now.pop(name, None) if number == -1 else self.now.update({name: number})

    def choices(self, most: int, rng: random.Random) -> Iterator[tuple[set[int], dict[int, str]]]:
        """Which changes of names reach the disk, and what of each file: all combinations, or so
        many of them by lot."""
        open_changes = [i for i in range(len(self.entries)) if i not in self.certain]
        open_files = [i for i, (synced, written) in enumerate(self.files) if synced != written]
        axes = [(True, False)] * len(open_changes) + [_TAILS] * len(open_files)
        count = 1
        for axis in axes:
            count *= len(axis)
        if count <= most:
            every: Iterator = itertools.product(*axes)
        else:
            every = (tuple(rng.choice(axis) for axis in axes) for _ in range(most))
        for picks in every:
            happens = set(self.certain)
            happens |= {i for i, pick in zip(open_changes, picks, strict=False) if pick}
            yield happens, dict(zip(open_files, picks[len(open_changes) :], strict=True))

    def state(self, happens: set[int], tails: dict[int, str]) -> Tree:
        names = dict(self.start)
        for i, (_, changes) in enumerate(self.entries):
            for name, number in changes.items() if i in happens else ():
                names.pop(name, None) if number == -1 else names.update({name: number})
        content = {
            name: None if number is None else self._content(number, tails.get(number, "all"))
            for name, number in names.items()
        }
        return {name: kept for name, kept in content.items() if _is_reached(name, content)}

    def _content(self, number: int, tail: str) -> bytes:
        synced, written = self.files[number]
        middle = (len(synced) + len(written)) // 2
        pairs = enumerate(zip(synced, written, strict=False))
        same = next((i for i, (old, new) in pairs if old != new), min(len(synced), len(written)))
        return {
            "all": written,
            "none": synced,
            "half": written[:middle],
            "zeros": written[:same].ljust(len(written), b"\0"),
        }[tail]


def _is_reached(name: str, content: Tree) -> bool:
    """Whether all folders above are there: what lies in one that was lost is lost with it."""
    parents = list(Path(name).parents)[:-1]
    return all(content.get(str(parent), b"") is None for parent in parents)


def _digest(state: Tree) -> str:
    total = hashlib.sha256()
    for name, content in sorted(state.items()):
        total.update(
            f"{name}\0{content is None}\0".encode() + hashlib.sha256(content or b"").digest()
        )
    return total.hexdigest()
