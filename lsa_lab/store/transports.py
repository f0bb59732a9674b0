"""How the processes of one computation exchange bytes: not at all, by jax, or by a shared folder.

``processes`` has what the shares are made of.
"""

import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from lsa_lab.store import safe_files

_PIECE = 1 << 24  # bytes that are sent at a time
_POLL = 0.2  # seconds between two looks at a folder


class LostProcessError(RuntimeError):
    """Another process of the same computation has ended; the message says which, and what to do."""


class NotBegunError(LostProcessError):
    """Another process has not begun, or has put itself off: this one can make room for it."""


class Alone:
    """Which of ``count`` processes this is, and how it exchanges bytes with the others: one."""

    index, count = 0, 1

    @contextlib.contextmanager
    def alive(self) -> Iterator[None]:
        """Show the others life until the end."""
        yield

    def exchange(self, content: bytes, label: str) -> list[bytes]:
        """What each process has put in, in order; ``label`` is the same in all of them."""
        return [content]


class Distributed(Alone):
    """The processes of ``jax.distributed``, which the entry point has initialised."""

    def __init__(self) -> None:
        self.index, self.count = jax.process_index(), jax.process_count()
        first = {device.process_index: device for device in reversed(jax.devices())}
        self._mesh = jax.sharding.Mesh([first[i] for i in range(self.count)], "process")
        self.exchange(b"", "begin")  # connects: a process that ends later on is noticed at once

    def exchange(self, content: bytes, label: str) -> list[bytes]:
        sizes = self._gather(np.array([len(content)], np.int64).view(np.uint8))
        lengths = sizes.view(np.int64)[:, 0]
        piece = min(_PIECE, 1 << int(lengths.max()).bit_length())  # few shapes: each is a compile
        padded = np.zeros(-(-int(lengths.max()) // piece) * piece, np.uint8)
        padded[: len(content)] = np.frombuffer(content, np.uint8)
        pieces = [self._gather(padded[i : i + piece]) for i in range(0, len(padded), piece)]
        return [
            b"".join(rows[i].tobytes() for rows in pieces)[:length]
            for i, length in enumerate(lengths)
        ]

    def _gather(self, row: np.ndarray) -> np.ndarray:  # [m] uint8 -> [count, m]
        """The rows of all processes: bytes, for a float64 would be rounded where x64 is off."""
        spread, whole = (
            jax.sharding.NamedSharding(self._mesh, jax.sharding.PartitionSpec(*axes))
            for axes in (["process"], [])
        )
        try:
            rows = jax.make_array_from_process_local_data(spread, row[None])
            rows = jax.jit(lambda x: x, out_shardings=whole)(rows)
            return np.asarray(rows.addressable_data(0))
        except (RuntimeError, ValueError) as error:  # JaxRuntimeError is one or the other
            raise LostProcessError(
                f"one of the {self.count} processes has ended before the others: start all of them "
                "again, and they go on from their checkpoints"
            ) from error


class Folder(Alone):
    """Processes that share a folder and nothing else: tasks of an array job.

    Each writes what it puts in to a file, waits for the files of the others, and while it is
    in use shows in a third that it lives. One that has shown no life for ``heartbeat`` seconds is
    lost. Where one has not begun ``patience`` seconds after it was first missed, this one ends with
    NotBegunError and is started again later: what it has put in stays, so that any number of them
    at a time, one too, come to the end. The caller deletes the folder.
    """

    def __init__(
        self,
        path: str | Path,
        index: int,
        count: int,
        *,
        heartbeat: float = 30.0,
        patience: float = 3600.0,
    ) -> None:
        if not 0 <= index < count:
            raise ValueError(f"process {index} of {count}: they are counted from 0")
        self.path, self.index, self.count = Path(path), index, count
        self.heartbeat, self.patience = heartbeat, patience
        self._exchanges = 0

    @contextlib.contextmanager
    def alive(self) -> Iterator[None]:
        self.path.mkdir(parents=True, exist_ok=True)
        over = threading.Event()

        def sign() -> None:
            safe_files.write(self._life(self.index), str(time.time_ns()).encode())

        def live() -> None:
            while not over.wait(self.heartbeat / 6):
                sign()

        sign()
        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._life(self.index).unlink(missing_ok=True)

    def exchange(self, content: bytes, label: str) -> list[bytes]:
        name = f"{self._exchanges:06d}-{hashlib.sha256(label.encode()).hexdigest()[:16]}"
        self._exchanges += 1
        files = [self.path / f"{name}.{process}" for process in range(self.count)]
        safe_files.write(files[self.index], content)
        self._wait(files)
        return [file.read_bytes() for file in files]

    def _wait(self, files: list[Path]) -> None:
        begun = time.monotonic()
        signs: dict[int, tuple[bytes, float]] = {}  # the last sign of life, and since when
        while missing := [i for i, file in enumerate(files) if not file.exists()]:
            now = time.monotonic()
            for process in missing:
                sign = self._sign(process)
                last, since = signs.get(process, (sign, begun))
                since = since if sign == last else now
                signs[process] = sign, since
                if now - since > (self.heartbeat if sign else self.patience):
                    kind = LostProcessError if sign else NotBegunError
                    state = "given no sign of life" if sign else "not begun"
                    raise kind(
                        f"process {process} of {self.count} has {state} for "
                        f"{now - since:.0f} s: start it again, and this one, which is process "
                        f"{self.index}; both go on from their checkpoints"
                    )
            time.sleep(_POLL)

    def _sign(self, process: int) -> bytes:
        try:
            return self._life(process).read_bytes()
        except OSError:
            return b""

    def _life(self, process: int) -> Path:
        return self.path / f"{process}.alive"


_transport = Alone()


@contextlib.contextmanager
def use(transport: Alone) -> Iterator[None]:
    """The choice of an entry point, for this whole process: how the shares are exchanged."""
    global _transport
    before, _transport = _transport, transport
    try:
        with transport.alive():
            yield
    finally:
        _transport = before


def current() -> Alone:
    """What this process exchanges bytes by."""
    return _transport


def leads() -> bool:
    """Whether this is the process that prints and writes for all."""
    return _transport.index == 0


def index() -> int:
    """Which of the processes this is, from 0."""
    return _transport.index


def count() -> int:
    """The number of processes."""
    return _transport.count
