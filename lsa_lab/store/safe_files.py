"""Files that are written whole, and locks of files."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path


def write(path: str | Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    """Write a file; a kill at any instant leaves the old file or the new one."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


class OwnedError(RuntimeError):
    """Another process has locked the file or folder; the message says which."""


@contextlib.contextmanager
def owned(path: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a path: another process raises OwnedError at once, or waits with ``wait``.

    The kernel holds the lock, which ends with the process. Where the system has no such locks
    (Windows, some network disks) nothing is locked.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f".{path.name}.lock")
    handle = _locked(file, path, wait)
    try:
        yield
    finally:
        if handle is not None:
            file.unlink(missing_ok=True)
            os.close(handle)


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
