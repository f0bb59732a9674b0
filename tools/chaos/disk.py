"""What a program asks of its disk, call by call, and every state in which a power cut may leave it.

``watch`` stands between the code and ``open`` and ``os``, in this process alone: the product has
no hooks. After ``Killed`` was raised nothing that the program does reaches the disk any more, its
``finally`` included: that is what a SIGKILL leaves, at a thousandth of the price of a process.

POSIX promises, and no more: the bytes of a file last once it was synced, and the entries of a
folder once the folder was. Until then each entry that was added, moved or removed may have reached
the disk or not, in any order; and of the bytes all, none, the first half, or as many zeros.
"""

import builtins
import contextlib
import io
import itertools
import os
import random
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
_HOOKS = ("open", "fsync", "write", "ftruncate", "replace", "rename", "unlink", "remove")
_HOOKS += ("mkdir", "rmdir")
_TAILS = ("all", "none", "half", "zeros")  # what is there of bytes that were not synced
Tree = dict[str, bytes | None]  # the bytes of each file by its path below the root; None: a folder
Names = dict[str, int]  # the number of each file by its path, or one of these:
FOLDER, GONE = -1, -2


class Lost(AssertionError):
    """A promise that was not kept; the message says where."""


class Killed(BaseException):
    """The end of a process that cannot be caught; whoever watches raises it."""


@dataclass(frozen=True)
class Call:
    """One call that changes a disk, or makes a change last."""

    kind: str  # create, truncate, write, fsync, fsync folder, rename, unlink, mkdir or rmdir
    path: str
    to: str = ""  # of a rename
    offset: int = 0  # of a write
    data: bytes = b""


See = Callable[[str, Call], None]  # (moment, call); raises what the call is to end with


@contextlib.contextmanager
def watch(root: Path, see: See) -> Iterator[None]:
    """Show each call below ``root`` to ``see`` before, during and after it: a write in its midst,
    when half of it is in the file; a call of any other kind is whole or not at all, and what
    ``see`` raises "during" it comes in its place."""
    watch = _Watch(os.path.realpath(root), see)
    hooks = mock.patch.multiple(os, **{name: watch.hook(name) for name in _HOOKS})
    opens = (mock.patch.object(module, "open", watch.file) for module in (builtins, io))
    try:
        with hooks, next(opens), next(opens):
            yield
    finally:
        for raw in watch.files:
            raw.close()


class _Watch:
    def __init__(self, root: str, see: See):
        self.root, self.see, self.dead, self.files = root, see, False, []
        self.real_open = open

    def hook(self, name: str) -> Callable:
        """A function of ``os`` that shows what it changes."""
        real = getattr(os, name)

        def hooked(*arguments: Any, dir_fd: int | None = None) -> Any:
            options = {} if dir_fd is None else {"dir_fd": dir_fd}
            call = _call_of(name, arguments, dir_fd)
            perform = lambda: real(*arguments, **options)  # noqa: E731
            return perform() if call is None else self.act(call, perform)

        return hooked

    def act(self, call: Call, perform: Callable[[], Any], half: Callable | None = None) -> Any:
        if not self.inside(call.path):
            return perform()
        if self.dead:
            raise Killed
        try:
            self.see("before", call)
            if half:
                perform = half()
            self.see("during", call)
            answer = perform()
            self.see("after", call)
            return answer
        except Killed:
            self.dead = True
            raise

    def inside(self, path: str) -> bool:
        return f"{os.path.realpath(path)}{os.sep}".startswith(f"{self.root}{os.sep}")

    def file(self, path: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        """``open``: what is opened for writing becomes a file whose writes are seen."""
        writes = not isinstance(path, int) and set(mode) & set("wax+")
        if not writes or not self.inside(place := os.path.abspath(path)):
            return self.real_open(path, mode, *rest, **options)
        is_new = not os.path.lexists(place)
        opened = lambda: _File(self, place, mode.replace("b", "").replace("t", ""))  # noqa: E731
        if is_new or "w" in mode:
            raw = self.act(Call("create" if is_new else "truncate", place), opened)
        else:
            raw = opened()
        buffered = io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding="utf-8")


def _call_of(name: str, arguments: tuple, dir_fd: int | None) -> Call | None:
    """What a call of ``os`` changes, where it changes something or will not raise by itself."""
    first = arguments[0]
    if isinstance(first, int):
        place = os.readlink(f"/proc/self/fd/{first}")
    else:
        folder = os.getcwd() if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
        place = os.path.join(folder, os.fspath(first))
    exists = os.path.lexists(place)
    if name == "open":
        return Call("create", place) if arguments[1] & os.O_CREAT and not exists else None
    if name == "fsync":
        is_folder = stat.S_ISDIR(os.fstat(first).st_mode)
        return Call("fsync folder" if is_folder else "fsync", place)
    if name == "write":
        is_file = stat.S_ISREG(os.fstat(first).st_mode)
        offset = os.lseek(first, 0, os.SEEK_CUR) if is_file else 0
        return Call("write", place, offset=offset, data=bytes(arguments[1]))
    if name in ("replace", "rename"):
        return Call("rename", place, to=os.path.abspath(arguments[1]))
    if name == "mkdir":
        return None if exists or not os.path.isdir(os.path.dirname(place)) else Call(name, place)
    if name in ("unlink", "remove"):
        return Call("unlink", place) if exists else None
    return Call({"ftruncate": "truncate"}.get(name, name), place)


class _File(io.FileIO):
    """A file whose writes are seen."""

    def __init__(self, watch: _Watch, path: str, mode: str):
        super().__init__(path, mode)
        self._watch, self._path = watch, path
        watch.files.append(self)

    def write(self, data: Any) -> int:
        content = bytes(data)
        if self._watch.dead:  # buffers are emptied when they are collected
            return len(content)
        offset = os.fstat(self.fileno()).st_size if "a" in self.mode else self.tell()
        first, middle = super().write, len(content) // 2

        def half() -> Callable:
            first(content[:middle])
            return lambda: first(content[middle:])

        call = Call("write", self._path, offset=offset, data=content)
        self._watch.act(call, lambda: first(content), half)
        return len(content)


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


def tree(root: Path) -> Tree:
    """What lies below a folder."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


def lay(state: Tree, root: Path) -> None:
    """The state as a folder, which is empty."""
    for name, content in sorted(state.items()):
        if content is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(content)


def crash_states(log: Log, most: int) -> Iterator[tuple[int, Tree]]:
    """Each state after a cut behind each number of calls, at most so many of one cut, and the cut;
    no state of one cut twice."""
    rng = random.Random(0)
    for cut in range(len(log.calls) + 1):
        seen: list[Tree] = []
        for state in _Disk(log, cut).states(most, rng):
            if state not in seen:
                seen.append(state)
                yield cut, state


class _Disk:
    """What the calls before a cut have changed, and how much of that is certain."""

    def __init__(self, log: Log, cut: int):
        self.root = os.path.realpath(log.root)
        self.files: list[tuple[bytes, bytes]] = []  # as synced, as written
        self.entries: list[tuple[str, Names]] = []  # folder, changes of names
        self.certain: set[int] = set()  # of the changes
        self.start = {
            name: FOLDER if content is None else self._file(content)
            for name, content in log.start.items()
        }
        self.now = dict(self.start)
        for call in log.calls[:cut]:
            self._apply(call)

    def _file(self, content: bytes = b"") -> int:
        self.files.append((content, content))
        return len(self.files) - 1

    def _name(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self.root)

    def _apply(self, call: Call) -> None:
        name = self._name(call.path)
        number = self.now.get(name, GONE)
        if call.kind == "fsync folder":
            here = "" if name == "." else name
            self.certain |= {i for i, (where, _) in enumerate(self.entries) if where == here}
        elif call.kind in ("create", "mkdir", "unlink", "rmdir", "rename"):
            names = {name: GONE}
            if call.kind == "rename":
                names = {self._name(call.to): number, name: GONE}
            elif call.kind in ("create", "mkdir"):
                names = {name: self._file() if call.kind == "create" else FOLDER}
            self.entries.append((os.path.dirname(name), names))
            self.now |= names
        elif number >= 0:  # of a file that has lost its name nothing is left anyway
            synced, written = self.files[number]
            if call.kind == "fsync":
                synced = written
            elif call.kind == "truncate":
                written = b""
            elif call.kind == "write":
                before = written[: call.offset].ljust(call.offset, b"\0")
                written = before + call.data + written[call.offset + len(call.data) :]
            self.files[number] = synced, written

    def states(self, most: int, rng: random.Random) -> Iterator[Tree]:
        """Which changes of names reach the disk, and what of each file: all combinations, or so
        many of them by lot."""
        changes = [i for i in range(len(self.entries)) if i not in self.certain]
        files = [i for i, (synced, written) in enumerate(self.files) if synced != written]
        axes: list[tuple] = [(True, False)] * len(changes) + [_TAILS] * len(files)
        every: Iterator = itertools.product(*axes)
        if 2 ** len(changes) * 4 ** len(files) > most:
            every = (tuple(map(rng.choice, axes)) for _ in range(most))
        for picks in every:
            lost = {i for i, happens in zip(changes, picks, strict=False) if not happens}
            yield self._state(lost, dict(zip(files, picks[len(changes) :], strict=True)))

    def _state(self, lost: set[int], tails: dict[int, str]) -> Tree:
        names = dict(self.start)
        for i, (_, changes) in enumerate(self.entries):
            names |= {} if i in lost else changes
        content = {
            name: None if number == FOLDER else self._content(number, tails.get(number, "all"))
            for name, number in names.items()
            if number != GONE
        }  # what lies in a folder that was lost is lost with it
        return {
            name: kept
            for name, kept in content.items()
            if all(content.get(str(parent), b"") is None for parent in [*Path(name).parents][:-1])
        }

    def _content(self, number: int, tail: str) -> bytes:
        synced, written = self.files[number]
        middle = (len(synced) + len(written)) // 2
        pairs = enumerate(zip(synced, written, strict=False))
        same = next((i for i, (old, new) in pairs if old != new), min(len(synced), len(written)))
        zeros = written[:same].ljust(len(written), b"\0")
        return {"all": written, "none": synced, "half": written[:middle], "zeros": zeros}[tail]
