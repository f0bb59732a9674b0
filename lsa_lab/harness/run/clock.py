"""The time left of experiments: what each took last time, at the pace of this time.

An estimate is of a whole experiment, its parts, its judgement and its figure; it is unknown rather
than zero where something is still to do.
"""

import math
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_PRIOR = 0.1  # of last time's seconds, by which this time's pace is steadied at its beginning


class Part(NamedTuple):
    """One bar of an experiment, in seconds since the experiment began."""

    label: str
    began: float
    end: float


class Past(NamedTuple):
    """How an experiment went last time; ``start`` is "cold", "warm" or not known."""

    seconds: float | None = None
    parts: tuple[Part, ...] = ()
    start: str | None = None

    def __str__(self) -> str:
        if not self.seconds:
            return "first time"
        return f"last time {clock_word(self.seconds)}" + (f", {self.start}" if self.start else "")


class Running(NamedTuple):
    """A bar of now: when it began, at which share, the share now, when it ended, and the seconds
    that its own speed leaves."""

    label: str
    began: float
    first: float
    share: float
    end: float | None
    remaining: float | None


class Left(NamedTuple):
    """The seconds left, which may be all that is known of more."""

    seconds: float | None
    at_least: bool = False

    def share(self, elapsed: float) -> float | None:
        """How much is done after so many seconds, below 1 until all is; None if nobody knows."""
        if self.seconds is None or self.at_least:
            return None
        return elapsed / (elapsed + self.seconds) if elapsed else 0.0

    def __str__(self) -> str:
        if not self.seconds or self.seconds <= 0:
            return "time left unknown"
        return f"{'over ' if self.at_least else ''}{clock_word(math.ceil(self.seconds))} left"


class Clock:
    """The time left of the experiment that runs, and of all.

    One that never ran is expected to take as long as the others do on average.
    """

    def __init__(self, pasts: Sequence[Past]):
        measured = [past.seconds for past in pasts if past.seconds]
        self._usual = sum(measured) / len(measured) if measured else None
        self._waiting = list(pasts)
        self._past = Past()
        self._spent = self._planned = 0.0  # by the experiments that are over
        self._parts: list[Running] = []
        self._since = self._first = time.monotonic()

    def begin(self) -> None:
        """The next experiment starts now; what it left behind is the pace of this time."""
        if self._past.seconds:
            self._spent += self.elapsed()
            self._planned += self._past.seconds
        self._past, self._since, self._parts = self._waiting.pop(0), time.monotonic(), []

    def elapsed(self) -> float:
        return time.monotonic() - self._since

    def elapsed_of_all(self) -> float:
        return time.monotonic() - self._first

    def follow(self, parts: Iterable[Running]) -> None:
        """The bars as they stand now."""
        self._parts = list(parts)

    def left_of_this(self) -> Left:
        """The longer of what last time says and what the bars' own speed says."""
        total, now = self._total(), self.elapsed()
        expected = None if total is None or total <= now else total - now
        least = max((part.remaining or 0.0 for part in self._parts), default=0.0)
        if expected is None or expected < least:
            return Left(least or None, at_least=True)
        return Left(expected)

    def share(self) -> float | None:
        """How much of this experiment is done."""
        return self.left_of_this().share(self.elapsed())

    def share_of_all(self) -> float | None:
        """The same of all experiments."""
        return self.left().share(self.elapsed_of_all())

    def left(self) -> Left:
        """The time left of this experiment and of those that wait."""
        waiting = [past.seconds or self._usual for past in self._waiting]
        seconds = [s * self._pace() for s in waiting if s is not None]
        this = self.left_of_this()
        at_least = this.at_least or this.seconds is None or len(seconds) < len(waiting)
        return Left(sum(seconds) + (this.seconds or 0.0), at_least)

    def _pace(self) -> float:
        return self._spent / self._planned if self._planned else 1.0

    def _total(self) -> float | None:
        """When the current experiment ends: the rest of last time, at the pace of its parts."""
        seconds = self._past.seconds or self._usual
        if seconds is None:
            return None
        place = now = 0.0  # where last time stood, and when this time does
        before = spent = _PRIOR * seconds  # in the same parts of both
        spent *= self._pace()
        for once, part in self._pairs():
            until = self.elapsed() if part.end is None else part.end
            until = part.began if part.share == part.first else until
            length = once.end - once.began
            if once.began + part.share * length > place:
                place, now = once.began + part.share * length, until
            before += (part.share - part.first) * length
            spent += until - part.began
        return now + max(seconds - place, 0.0) * spent / before

    def _pairs(self) -> Iterable[tuple[Part, Running]]:
        """The bars that both times have."""
        earlier: dict[str, list[Part]] = {}
        for once in self._past.parts:
            earlier.setdefault(once.label, []).append(once)
        for part in self._parts:
            same = earlier.get(part.label)
            if same:
                yield same.pop(0), part


def clock_word(seconds: float) -> str:
    """Seconds as 0:01:30."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def short_clock_word(seconds: float) -> str:
    """Seconds as 0:07, 1:30 or 12:01:30, at least one of them."""
    word = clock_word(max(seconds, 1.0))
    return word.removeprefix("0:").removeprefix("0") if word.startswith("0:") else word
