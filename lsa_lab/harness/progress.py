"""What a run says while it lasts: live bars on a terminal, plain lines in a log.

A bar is that of a whole experiment or of all, with the time left, or that of a part, with none.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.text import Text

from lsa_lab.harness.clock import Clock, Left, Part, Running, clock_word

EVERY = 30.0  # seconds between two lines of a log


class Bars(Progress):
    """Rich's bars; a task is a part of the experiment that runs unless it is said to be whole."""

    def __init__(self, clock: Clock, console: Console):
        self.clock = clock  # first: rich draws once while it is made
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            _Percent(),
            Elapsed(),
            _Left(),
            console=console,
            disable=not console.is_terminal,
            refresh_per_second=2,
        )

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

    def add_whole(
        self, description: str, share: Callable[[], float | None], left: Callable[[], Left]
    ) -> TaskID:
        """A bar of more than one part; the functions tell what share is done, and what is left."""
        return self.add_task(description, total=None, share=share, left=left)

    def follow(self) -> None:
        """Every bar as it stands now."""
        self.clock.follow(map(self._running, self._parts()))
        for task in self.tasks:
            if "share" in task.fields:
                share = task.fields["share"]()
                total = None if share is None else 1.0
                self.update(task.id, total=total, completed=share or 0.0)

    def take_away(self) -> list[Part]:
        """The parts of an experiment that is over: when each began and ended."""
        parts = []
        for task in self._parts():
            part = self._running(task)
            end = self.clock.elapsed() if part.end is None else part.end
            parts.append(Part(part.label, part.began, end))
            self.remove_task(task.id)
        return parts

    def get_renderables(self) -> Iterable[RenderableType]:
        self.follow()
        yield from super().get_renderables()

    def _parts(self) -> list[Task]:
        return [task for task in self.tasks if "share" not in task.fields]

    def _running(self, task: Task) -> Running:
        label, began = task.fields["label"], task.fields["began"]
        end = None if task.finished_time is None else began + task.finished_time
        remaining = None if task.finished else task.time_remaining
        return Running(label, began, task.fields["first"], task.percentage / 100, end, remaining)


@contextlib.contextmanager
def bars(clock: Clock, console: Console) -> Iterator[Bars]:
    """Live bars on a terminal; elsewhere, in the log of a build for one, a line now and then."""
    with Bars(clock, console) as progress:
        if console.is_terminal:
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


class _Percent(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(_percent(task), style="progress.percentage")


class _Left(ProgressColumn):
    def render(self, task: Task) -> Text:
        left = task.fields.get("left")
        return Text("" if left is None else str(left()), style="progress.remaining")


def _percent(task: Task) -> str:
    return "" if task.total is None else f"{task.percentage:.0f} %"


def _report(progress: Bars, over: threading.Event) -> None:
    while not over.wait(EVERY):
        progress.follow()
        for task in progress.tasks:
            if not task.finished:
                left = task.fields.get("left")
                words = [_percent(task), f"{clock_word(task.elapsed or 0.0)} elapsed"]
                words += [] if left is None else [str(left())]
                print(f"{task.description}: {', '.join(filter(None, words))}", flush=True)
