"""Files that are there whole or not at all, whoever is killed and however many write.

What ``write``, ``remove`` and ``make`` have done when they return outlasts a power cut, as far as
the disk keeps what it says is kept.
"""

import contextlib
import hashlib
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

MOST = 1 << 28  # bytes of a file of a result's folder, some hundred times those there are


def write(path: str | Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    """Write a file, whole or in parts; a kill at any instant leaves the old one or the new one."""
    path = Path(path)
    make(path.parent)
    _sweep(path)
    temporary = _temporary(path)
    try:
        _write(temporary, [content] if isinstance(content, bytes) else content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _keep_names(path.parent)


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files of one folder: all of them beside their places first, so that a full disk leaves
    the old ones, then each to its place. Those with the same bytes are left.

    The last one tells of the others: its old one goes before they come, and it comes after them."""
    new = {path: content for path, content in contents.items() if not _holds(path, content)}
    if not new:
        return
    *_, last = contents
    folder, temporary = last.parent, {path: _temporary(path) for path in new}
    make(folder)
    try:
        for path, content in new.items():
            _sweep(path)
            _write(temporary[path], [content])
        if last in new:
            remove(last)
        for path in new:
            if path == last:
                _keep_names(folder)
            os.replace(temporary[path], path)
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)
    _keep_names(folder)


def _holds(path: Path, content: bytes) -> bool:
    """Whether a plain file has these bytes."""
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


class NotPlainError(OSError):
    """A link, a pipe, a device or a huge file where a plain file belongs; nothing was read."""


def check_plain(folder: Path) -> None:
    """Raise NotPlainError where a folder holds anything but files up to ``MOST`` and folders."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # another process has just moved it
            mode, size = path.lstat().st_mode, path.lstat().st_size
            if not (stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and size <= MOST)):
                raise NotPlainError(
                    f"{path} is a link, a pipe, a device or beyond {MOST >> 20} MiB: it is not read"
                )


def remove(path: str | Path) -> None:
    """Remove a file, if it is there."""
    path = Path(path)
    if path.exists():
        path.unlink(missing_ok=True)
        _keep_names(path.parent)


def make(folder: str | Path) -> None:
    """Make a folder, and those above it, where they are missing."""
    folder = Path(folder)
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in reversed(missing):
        _keep_names(path.parent)


def _keep_names(folder: Path) -> None:
    """Let what was added to a folder, moved in it or removed from it outlast a power cut."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def rescued(path: Path, content: bytes) -> Path:
    """The same bytes in the folder for temporary files; raises OSError if they fit nowhere."""
    file, name = tempfile.mkstemp(prefix=f"{path.stem}-", suffix=path.suffix)
    with open(file, "wb") as opened:
        opened.write(content)
        opened.flush()
        with contextlib.suppress(OSError):  # it is better than nothing
            os.fsync(opened.fileno())
    return Path(name)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{_owner(os.getpid())}.tmp")


def _write(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    with open(path, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def _owner(pid: int) -> str:
    """One thread of one process on one machine: no two write the same temporary file."""
    machine = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
    return f"{machine}-{pid}-{threading.get_ident()}"


def _sweep(path: Path) -> None:
    """Remove what processes of this machine, killed while writing, have left beside the file."""
    machine = _owner(0).split("-")[0]
    for left in path.parent.glob(f".{path.name}.{machine}-*.tmp"):
        pid = int(left.name.removesuffix(".tmp").split("-")[-2])
        if pid != os.getpid() and not is_alive(pid):
            left.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether this machine has a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is somebody else's
    return True


class OwnedError(RuntimeError):
    """Another process is at work on the same file or folder; the message says which."""


@contextlib.contextmanager
def owned(path: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Only one process at a time is inside for one path; another one raises OwnedError at once, or
    with ``wait`` stands in line.

    The kernel holds the lock: it ends with the process, however that ends, and never before. Where
    the system has no such locks (Windows, some network disks) nothing is asked.
    """
    path = Path(path)
    make(path.parent)
    file = path.with_name(f".{path.name}.lock")
    handle = _locked(file, path, wait)
    try:
        yield
    finally:
        if handle is not None:
            file.unlink(missing_ok=True)
            os.close(handle)


def check_writable(folder: str | Path) -> None:
    """Raise OSError unless files can be made in the folder, which is made for it."""
    folder = Path(folder)
    make(folder)
    write(folder / ".writable", b"")
    (folder / ".writable").unlink(missing_ok=True)


def _locked(file: Path, path: Path, wait: bool) -> int | None:
    try:
        import fcntl
    except ImportError:
        return None
    while True:
        if file.is_symlink():  # it would be written to
            file.unlink(missing_ok=True)
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            owner = os.read(handle, 200).decode(errors="replace") or "another process"
            os.close(handle)
            raise OwnedError(f"{path} is written by {owner}: wait for it, or end it") from None
        except OSError:
            os.close(handle)
            return None
        # The owner before us may have removed the file between our opening and our locking it.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(handle).st_ino == file.stat().st_ino:
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
                return handle
        os.close(handle)
