"""The time left: of one experiment by its own speed, of several by what each took before."""

import contextlib
import threading
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

EVERY = 30.0  # seconds between two lines of a log


class Clock:
    """The seconds left of several experiments, from those that each took last time, or None.

    One that never ran is expected to take as long as the others do on average.
    """

    def __init__(self, seconds: list[float | None]):
        measured = [s for s in seconds if s]
        usual = sum(measured) / len(measured) if measured else None
        self.waiting = [s or usual for s in seconds]
        self.current: float | None = 0.0
        self.since = time.monotonic()

    def begin(self) -> None:
        """The next experiment starts now."""
        self.current, self.since = self.waiting.pop(0), time.monotonic()

    def left(self) -> float | None:
        waiting = [s for s in self.waiting if s is not None]
        if self.current is None or len(waiting) < len(self.waiting):
            return None
        return max(self.current - (time.monotonic() - self.since), 0.0) + sum(waiting)


@contextlib.contextmanager
def bars(console: Console) -> Iterator[Progress]:
    """Live bars on a terminal; elsewhere, in the log of a build for one, a line now and then."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        _Left(),
    )
    live = console.is_terminal
    with Progress(*columns, console=console, disable=not live, refresh_per_second=2) as progress:
        if live:
            yield progress
            return
        over = threading.Event()
        reporter = threading.Thread(target=_report, args=(progress, over), daemon=True)
        reporter.start()
        try:
            yield progress
        finally:
            over.set()
            reporter.join()


class _Left(TimeRemainingColumn):
    def render(self, task: Task) -> Text:
        return Text(_hours(_left(task)), style="progress.remaining")


def _left(task: Task) -> float | None:
    clock = task.fields.get("clock")
    return task.time_remaining if clock is None else clock.left()


def _report(progress: Progress, over: threading.Event) -> None:
    while not over.wait(EVERY):
        for task in progress.tasks:
            if not task.finished:
                times = f"{_hours(task.elapsed)} elapsed, {_hours(_left(task))} left"
                print(f"{task.description}: {task.percentage:.0f} %, {times}", flush=True)


def _hours(seconds: float | None) -> str:
    if seconds is None:
        return "-:--:--"
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
