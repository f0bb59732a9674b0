"""What a run takes: its seconds and those of its parts, its memory, and whether it began warm.

Both are facts of a machine, so the last ones are kept in the cache; config.json has those of the
run that computed the result.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsa_lab.harness.run import process
from lsa_lab.harness.run.clock import Part, Past
from lsa_lab.store import results

_HIT = "/jax/compilation_cache/cache_hits"
_MISS = "/jax/compilation_cache/cache_misses"


@dataclass
class Meter:
    """Counts while a run lasts."""

    hits: int = 0  # programs that the cache had
    misses: int = 0  # and those that were compiled anew
    # Bytes: the most that the process had at a time, what earlier experiments left included.
    memory: int | None = None

    @property
    def start(self) -> str | None:
        """ "cold" if most programs were compiled anew, "warm" if the cache had them."""
        if not self.hits + self.misses:
            return None
        return "cold" if self.misses > self.hits else "warm"

    def listen(self, event: str, **_: object) -> None:
        self.hits += event == _HIT
        self.misses += event == _MISS


@contextlib.contextmanager
def metered() -> Iterator[Meter]:
    """A Meter of what is computed inside; jax is imported."""
    from jax import monitoring

    meter, before = Meter(), peak(forget=True)
    monitoring.register_event_listener(meter.listen)
    try:
        yield meter
    finally:
        monitoring.unregister_event_listener(meter.listen)
        most = peak()
        # Where the peak of the whole process cannot be forgotten, only a higher one is this run's.
        if most is not None and before is not None and (before == 0 or most > before):
            meter.memory = most


class Spent:
    """The seconds and the memory of a run, with those of its earlier parts if it was interrupted.

    A file beside the checkpoints keeps them. A part that was killed could not write its own, and
    the seconds are None.
    """

    def __init__(self, folder: Path):
        self._file, self._since = folder / "spent.json", time.perf_counter()
        self._before: dict[str, Any] = {"seconds": 0.0, "memory": 0, "parts": 0}
        if self._file.exists():
            self._before = json.loads(self._file.read_text(encoding="utf-8"))
        elif folder.exists() and any(folder.iterdir()):
            self._before |= {"seconds": None, "parts": 1}

    @property
    def resumed(self) -> bool:
        return self._before["parts"] > 0

    @property
    def seconds(self) -> float | None:
        """So far."""
        before = self._before["seconds"]
        return None if before is None else before + time.perf_counter() - self._since

    def most(self, memory: int | None) -> int | None:
        """The most memory of all parts, of which this one took so much."""
        return memory and max(memory, self._before["memory"])

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Remember what is spent inside, should it end early."""
        parts = self._before["parts"] + 1
        self._write(self._before | {"seconds": None, "parts": parts})
        try:
            yield
        except BaseException:
            memory = self.most(peak() or 0)
            self._write({"seconds": self.seconds, "memory": memory, "parts": parts})
            raise

    def _write(self, facts: dict[str, Any]) -> None:
        results.write(self._file, json.dumps(facts).encode())


def keep(identity: str, past: Past, memory: int | None) -> None:
    """What a run took, for the next one of the same configuration."""
    facts = {"seconds": past.seconds, "parts": past.parts, "start": past.start, "memory": memory}
    results.write(_file(identity), json.dumps(facts).encode())


def last(identity: str, facts: dict | None, config: Any) -> tuple[Past, int | None]:
    """How that configuration went last time here; else what its result says of another time."""
    return kept(identity) or recorded(facts, config)


def kept(identity: str) -> tuple[Past, int | None] | None:
    """How that configuration went last time on this machine, if it did."""
    try:
        facts = json.loads(_file(identity).read_text(encoding="utf-8"))
        parts = tuple(Part(*part) for part in facts["parts"])
        return Past(facts["seconds"], parts, facts["start"]), facts["memory"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def recorded(facts: dict | None, config: Any) -> tuple[Past, int | None]:
    """What a record says of the run of that configuration; of another one it says nothing."""
    facts = facts if facts and facts["config"] == results.plain(config) else {}
    return Past(facts.get("wall_time"), (), facts.get("start")), facts.get("memory")


def _file(identity: str) -> Path:
    return process.cache() / "times" / f"{identity}.json"


def peak(forget: bool = False) -> int | None:
    """Bytes at the process's peak, 0 if that is forgotten now; None where no system says it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        if forget:
            Path("/proc/self/clear_refs").write_text("5")
            return 0
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
