"""What a run takes: its seconds, its memory, and whether it began warm."""

import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lsa_lab.store import results

_HITS, _MISSES = (f"/jax/compilation_cache/cache_{end}" for end in ("hits", "misses"))


class Spent:
    """The seconds and the memory of a run, with those of earlier sessions if it was interrupted.

    A file beside the checkpoints keeps them. A session that was killed could not write its own, and
    the seconds are None.
    """

    def __init__(self, folder: Path):
        self._file, self._since = folder / "spent.json", time.perf_counter()
        self.resumed = folder.exists() and any(folder.iterdir())
        self._seconds, self._memory = None if self.resumed else 0.0, 0
        if self._file.exists():
            before = json.loads(self._file.read_text(encoding="utf-8"))
            self._seconds, self._memory = before["seconds"], before["memory"]
        self._events: Counter[str] = Counter()

    @property
    def seconds(self) -> float | None:
        """So far."""
        return None if self._seconds is None else self._seconds + time.perf_counter() - self._since

    @property
    def memory(self) -> int | None:
        """Bytes: the most that the process had at a time, what earlier experiments left included;
        None where no system says it."""
        most = _peak()
        return most and max(most, self._memory)

    @property
    def start(self) -> str | None:
        """ "cold" if most programs were compiled anew, "warm" if the cache had them."""
        hits, misses = self._events[_HITS], self._events[_MISSES]
        if self.resumed or not hits + misses:
            return None
        return "cold" if misses > hits else "warm"

    @contextlib.contextmanager
    def keep(self) -> Iterator[None]:
        """Measure what is done inside, and remember it, should it end early; jax is imported."""
        from jax import monitoring

        with contextlib.suppress(OSError):  # the peak of what was before is forgotten, on Linux
            Path("/proc/self/clear_refs").write_text("5")
        self._write(None)
        monitoring.register_event_listener(self.listen)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):  # of a full disk; what is said of that goes on
                self._write(self.seconds)
            raise
        finally:
            monitoring.unregister_event_listener(self.listen)

    def listen(self, event: str, **_: object) -> None:
        self._events[event] += 1

    def _write(self, seconds: float | None) -> None:
        facts = {"seconds": seconds, "memory": self.memory or 0}
        results.write(self._file, json.dumps(facts).encode())


def _peak() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def clock_word(seconds: float) -> str:
    """Seconds as 0:01:30."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def short_clock_word(seconds: float) -> str:
    """Seconds as 0:07, 1:30 or 12:01:30, at least one of them."""
    word = clock_word(max(seconds, 1.0))
    return word.removeprefix("0:").removeprefix("0") if word.startswith("0:") else word
