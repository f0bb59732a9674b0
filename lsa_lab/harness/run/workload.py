"""The time left of experiments that are carried out several at a time."""

import heapq
import time
from collections.abc import Mapping

from lsa_lab.harness.run.clock import Left, Past


class Workload:
    """What each took last time, at the pace of this time; one that never ran is expected to take as
    long as the others do on average."""

    def __init__(self, pasts: Mapping[str, Past], count: int):
        seconds = [past.seconds for past in pasts.values() if past.seconds]
        self._usual = sum(seconds) / len(seconds) if seconds else None
        self._pasts, self._count = dict(pasts), count
        self._waiting = dict(pasts)
        self._began: dict[str, float] = {}
        self._spent = self._planned = 0.0  # by the experiments that are over
        self._first = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._first

    def seconds(self, name: str) -> float | None:
        return self._pasts[name].seconds or self._usual

    def begin(self, name: str) -> None:
        del self._waiting[name]
        self._began[name] = time.monotonic()

    def end(self, name: str) -> None:
        seconds = time.monotonic() - self._began.pop(name)
        if self._pasts[name].seconds:
            self._spent += seconds
            self._planned += self._pasts[name].seconds or 0.0

    def left(self, running: Mapping[str, Left]) -> Left:
        """Until the last one is over, each that waits being begun when another one is."""
        pace = self._spent / self._planned if self._planned else 1.0
        ends = sorted([left.seconds or 0.0 for left in running.values()])
        ends = [0.0] * (self._count - len(ends)) + ends
        seconds = [self.seconds(name) for name in self._waiting]
        for each in sorted(filter(None, seconds), reverse=True):
            heapq.heapreplace(ends, ends[0] + each * pace)
        open_ended = [left.at_least or left.seconds is None for left in running.values()]
        lacking = len(running) < len(self._began)
        return Left(max(ends), any(open_ended) or lacking or None in seconds)
