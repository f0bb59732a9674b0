"""What a run says while it lasts: live bars on a terminal, plain lines in a log.

A bar is that of a whole experiment or of all, with the time left, or that of a part, with none.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.progress import Progress, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lsa_lab.harness.run import measured
from lsa_lab.harness.run.clock import Clock, Left, Part, Past, Running, clock_word

EVERY = 30.0  # seconds between two lines of a log
_LONG = 60.0  # seconds left of a part that are worth a line of their own


class Row(NamedTuple):
    """What a bar says; the share that is done is None where it is not known."""

    text: str
    share: float | None
    elapsed: float
    left: str = ""
    over: bool = False

    @property
    def percent(self) -> str:
        return "" if self.share is None else f"{100 * self.share:.0f} %"

    def __str__(self) -> str:
        words = [self.percent, f"{clock_word(self.elapsed)} elapsed", self.left]
        return f"{self.text}: {', '.join(filter(None, words))}"


class Bars(Progress):
    """The bars of one experiment at a time, for ``screen`` to show: its own, and one a part."""

    def __init__(self, clock: Clock):
        self.clock = clock
        self._announced: set[TaskID] = set()
        super().__init__(disable=True)

    def add_task(
        self,
        description: str,
        start: bool = True,
        total: float | None = 100.0,
        completed: int = 0,
        visible: bool = True,
        **fields: Any,
    ) -> TaskID:
        """A bar that remembers its first description, and when it began and at which share."""
        first = completed / total if total else 0.0  # above 0 after a checkpoint
        marks = {"label": description, "began": self.clock.elapsed(), "first": first}
        return super().add_task(description, start, total, completed, visible, **marks | fields)

    @contextlib.contextmanager
    def experiment(self, name: str, past: Past) -> Iterator[None]:
        """The next experiment, with a bar of its own that goes with it, and so do those of its
        parts."""
        self.clock.begin()
        whole = self.add_task(f"{name} ({past})", total=None, whole=True)
        try:
            yield
        finally:
            self.take_away()
            self.remove_task(whole)

    def rows(self) -> list[Row]:
        """Every bar as it stands now."""
        self.clock.follow(map(self._running, self._parts()))
        rows = []
        for task in self.tasks:
            share, left = None if task.total is None else task.percentage / 100, ""
            if "whole" in task.fields:
                share, left = self.clock.share(), str(self.clock.left_of_this())
            rows.append(Row(task.description, share, task.elapsed or 0.0, left, task.finished))
        return rows

    def estimates(self) -> list[str]:
        """What has been learnt since the last call: once a part has shown its speed, how long it
        will take if that is long, and the memory so far."""
        words = []
        for task in self._parts():
            left = self._running(task).remaining
            if left is None or task.id in self._announced:
                continue
            self._announced.add(task.id)
            peak = measured.peak()
            memory = f"; {peak / 1e9:.1f} GB so far" if peak else ""
            if left >= _LONG:
                words.append(f"{task.fields['label']}: at its speed {Left(left)}{memory}")
        return words

    def take_away(self) -> list[Part]:
        """The parts of an experiment that is over: when each began and ended."""
        parts = []
        for task in self._parts():
            part = self._running(task)
            end = self.clock.elapsed() if part.end is None else part.end
            parts.append(Part(part.label, part.began, end))
            self.remove_task(task.id)
        return parts

    def _parts(self) -> list[Task]:
        return [task for task in self.tasks if "whole" not in task.fields]

    def _running(self, task: Task) -> Running:
        label, began = task.fields["label"], task.fields["began"]
        end = None if task.finished_time is None else began + task.finished_time
        remaining = None if task.finished else task.time_remaining
        return Running(label, began, task.fields["first"], task.percentage / 100, end, remaining)


@contextlib.contextmanager
def screen(rows: Callable[[], list[Row]], console: Console) -> Iterator[None]:
    """The rows as live bars on a terminal; elsewhere, in the log of a build for one, as lines now
    and then."""
    if console.is_terminal:
        with Live(
            get_renderable=lambda: _table(rows()),
            console=console,
            refresh_per_second=2,
            transient=True,
        ):
            yield
        return

    def lines() -> None:
        for row in rows():
            if not row.over:
                print(row, flush=True)

    with repeated(lines, EVERY):
        yield


@contextlib.contextmanager
def repeated(act: Callable[[], None], every: float) -> Iterator[None]:
    """Call ``act`` every so many seconds, in a thread of its own, until the end."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(every):
            act()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _table(rows: Sequence[Row]) -> Table:
    table = Table.grid(padding=(0, 1))
    for _ in range(5):
        table.add_column(no_wrap=True)
    for row in rows:
        done, now = 0.0 if row.share is None else row.share, time.monotonic()
        bar = ProgressBar(1.0, done, 20, pulse=row.share is None, animation_time=now)
        table.add_row(
            Text(row.text),
            bar,
            Text(row.percent, style="progress.percentage"),
            Text(clock_word(row.elapsed), style="progress.elapsed"),
            Text(row.left, style="progress.remaining"),
        )
    return table
