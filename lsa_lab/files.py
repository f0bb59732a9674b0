"""Files that are written whole, locks of files, the cache folder, and optional packages."""

import contextlib
import importlib
import os
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType


def cache_folder() -> Path:
    """Return the folder of compiled programs, checkpoints and downloads: LSA_LAB_CACHE or .cache.

    Everything in it can be made again.
    """
    return Path(os.path.expanduser(os.environ.get("LSA_LAB_CACHE") or ".cache"))


def write_file(path: str | Path, content: bytes | Iterable[bytes | memoryview]) -> None:
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


class FileLockedError(RuntimeError):
    """Another process has locked the file or folder; the message names the process."""


@contextlib.contextmanager
def lock_file(path: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a path: another process raises FileLockedError at once, or waits with ``wait``.

    The kernel holds the lock, which ends with the process. Where the system has no such locks
    (Windows, some network disks) nothing is locked.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f".{path.name}.lock")
    handle = _acquire(file, path, wait)
    try:
        yield
    finally:
        if handle is not None:
            file.unlink(missing_ok=True)
            os.close(handle)


def _acquire(file: Path, path: Path, wait: bool) -> int | None:
    try:
        import fcntl
    except ImportError:
        return None
    while True:
        if file.is_symlink():  # opening it would write to its target
            file.unlink(missing_ok=True)
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            owner = os.read(handle, 200).decode(errors="replace") or "another process"
            os.close(handle)
            raise FileLockedError(f"{path} is written by {owner}: wait for it, or end it") from None
        except OSError:
            os.close(handle)
            return None
        # The previous owner may have removed the file between our opening and our locking it.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(handle).st_ino == file.stat().st_ino:
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
                return handle
        os.close(handle)


def import_extra(name: str, extra: str) -> ModuleType:
    """Import a package that only an extra of lsa-lab installs, or raise ImportError naming it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name} is not installed; it comes with an extra: pip install 'lsa-lab[{extra}]'"
        ) from error
