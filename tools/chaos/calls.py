"""What a program asks of its disk, call by call: seen, failed, cut short or kept as a log.

``watched`` stands between the code and ``open`` and ``os``, in this process alone: the product has
no hooks. After ``Killed`` was raised nothing that the program does reaches the disk any more, its
``finally`` included: that is what a SIGKILL leaves, at a thousandth of the price of a process.
"""

import builtins
import contextlib
import io
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOMENTS = ("before", "during", "after")


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

    def __str__(self) -> str:
        return f"{self.kind} {Path(self.path).name.split('.tmp')[0]}"


See = Callable[[str, Call], None]  # (moment, call); raises what the call is to end with


@contextlib.contextmanager
def watched(root: Path, see: See) -> Iterator[None]:
    """Show each call below ``root`` to ``see`` before, during and after it: a write in its midst,
    when half of it is in the file; a call of any other kind is whole or not at all, and what
    ``see`` raises "during" it comes in its place."""
    watch = _Watch(os.path.realpath(root), see)
    names = ("open", "fsync", "replace", "rename", "unlink", "remove", "mkdir", "rmdir", "write")
    patched = {(os, name): getattr(watch, name) for name in (*names, "ftruncate")}
    patched |= {(builtins, "open"): watch.file, (io, "open"): watch.file}
    try:
        for (module, name), new in patched.items():
            watch.real[name if module is os else "file"] = getattr(module, name)
            setattr(module, name, new)
        yield
    finally:
        for module, name in patched:
            setattr(module, name, watch.real[name if module is os else "file"])
        for raw in watch.files:
            raw.close()


class _Watch:
    def __init__(self, root: str, see: See):
        self.root, self.see, self.real, self.dead = root, see, {}, False
        self.files: list[_File] = []

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

    def path(self, path: Any, dir_fd: int | None = None) -> str:
        folder = os.getcwd() if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
        return os.path.join(folder, os.fspath(path))

    def file(self, path: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        """``open``: what is opened for writing becomes a file whose writes are seen."""
        writes = not isinstance(path, int) and set(mode) & set("wax+")
        if not writes or not self.inside(self.path(path)):
            return self.real["file"](path, mode, *rest, **options)
        place, binary = self.path(path), mode.replace("b", "").replace("t", "")
        is_new = not os.path.lexists(place)
        empties = "w" in mode and not is_new
        opened = lambda: _File(self, place, binary)  # noqa: E731
        if is_new or empties:
            raw = self.act(Call("create" if is_new else "truncate", place), opened)
        else:
            raw = opened()
        buffered = io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding="utf-8")

    def open(self, path: Any, flags: int, *rest: Any, dir_fd: int | None = None) -> int:
        place = self.path(path, dir_fd)
        perform = lambda: self.real["open"](path, flags, *rest, dir_fd=dir_fd)  # noqa: E731
        if flags & os.O_CREAT and not os.path.lexists(place):
            return self.act(Call("create", place), perform)
        return perform()

    def fsync(self, handle: int) -> None:
        place = os.readlink(f"/proc/self/fd/{handle}")
        kind = "fsync folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "fsync"
        self.act(Call(kind, place), lambda: self.real["fsync"](handle))

    def write(self, handle: int, data: bytes) -> int:
        place = os.readlink(f"/proc/self/fd/{handle}")
        offset = os.lseek(handle, 0, os.SEEK_CUR) if self.inside(place) else 0
        call = Call("write", place, offset=offset, data=bytes(data))
        return self.act(call, lambda: self.real["write"](handle, data))

    def ftruncate(self, handle: int, length: int) -> None:
        place = os.readlink(f"/proc/self/fd/{handle}")
        self.act(Call("truncate", place), lambda: self.real["ftruncate"](handle, length))

    def replace(self, source: Any, target: Any) -> None:
        call = Call("rename", self.path(source), to=self.path(target))
        self.act(call, lambda: self.real["replace"](source, target))

    rename = replace

    def unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        place = self.path(path, dir_fd)
        if not os.path.lexists(place):
            self.real["unlink"](path, dir_fd=dir_fd)  # which raises
        call = Call("unlink", place)
        self.act(call, lambda: self.real["unlink"](path, dir_fd=dir_fd))

    remove = unlink

    def mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        place = self.path(path, dir_fd)
        if os.path.lexists(place) or not os.path.isdir(os.path.dirname(place)):
            self.real["mkdir"](path, mode, dir_fd=dir_fd)  # which raises
        call = Call("mkdir", place)
        self.act(call, lambda: self.real["mkdir"](path, mode, dir_fd=dir_fd))

    def rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        call = Call("rmdir", self.path(path, dir_fd))
        self.act(call, lambda: self.real["rmdir"](path, dir_fd=dir_fd))


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
        call = Call("write", self._path, offset=self.tell(), data=content)
        if "a" in self.mode:
            call = Call("write", self._path, offset=os.fstat(self.fileno()).st_size, data=content)
        middle = len(content) // 2
        first = super().write

        def half() -> Callable:
            first(content[:middle])
            return lambda: first(content[middle:])

        self._watch.act(call, lambda: first(content), half)
        return len(content)
