"""What a run says while it lasts: rich's bars on a terminal, plain lines in a log."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from lsa_lab.harness.run.clock import clock_word

FIRST, EVERY = 5.0, 30.0  # seconds to the first line of a log, and between two later ones
# The time left is shown with so many per cent done in so many parts whose speeds are so alike.
_SHARE, _PARTS, _STEADY = 10, 3, 1.5


def bars(console: Console) -> Progress:
    """Bars with the time left at their own speed; without a terminal nothing of them is drawn."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        _Left(),
        console=console,
        refresh_per_second=2,
        speed_estimate_period=600,
        transient=True,
        disable=not console.is_terminal,
    )


@contextlib.contextmanager
def screen(progress: Progress) -> Iterator[None]:
    """The bars on a terminal; elsewhere, in the log of a build for one, a line for each now and
    then."""

    def lines() -> None:
        for task in progress.tasks:
            if task.visible and not is_over(task):
                print(f"{words(task)}, {clock_word(task.elapsed or 0.0)} elapsed", flush=True)

    with (
        progress,
        repetition(lines, EVERY, FIRST) if progress.disable else contextlib.nullcontext(),
    ):
        yield


@contextlib.contextmanager
def own_bar(progress: Progress, text: str) -> Iterator[None]:
    """The bar of an experiment, which goes with it, and so do those of its parts."""
    before = set(progress.task_ids)
    progress.add_task(text, total=None)
    try:
        yield
    finally:
        for task in set(progress.task_ids) - before:
            progress.remove_task(task)


def words(task: Task) -> str:
    """As "training: loss 0.1, 25 %, 0:01:10 left"."""
    parts = [task.description, *([] if task.total is None else [f"{task.percentage:.0f} %"])]
    return ", ".join([*parts, *filter(None, [left_words(task)])])


def is_over(task: Task) -> bool:
    """Also of one that was resumed at its end."""
    return task.finished or (task.total is not None and task.completed >= task.total)


class _Left(ProgressColumn):
    """What is to be said of the time left."""

    def render(self, task: Task) -> Text:
        return Text(left_words(task), style="progress.remaining")


def left_words(task: Task) -> str:
    """As "0:01:10 left", once a tenth is done and the speeds of three parts of that are alike;
    "compiling" before the first step is over, else nothing."""
    samples = list(task._progress)
    if task.total is None or is_over(task):
        return ""
    if not samples:
        return "" if "of_parts" in task.fields else "compiling"
    if task.time_remaining is None or task.percentage < _SHARE or len(samples) <= _PARTS:
        return ""
    ends = [part * (len(samples) - 1) // _PARTS for part in range(_PARTS + 1)]
    speeds = [
        sum(sample.completed for sample in samples[begin + 1 : end + 1])
        / max(samples[end].timestamp - samples[begin].timestamp, 1e-9)
        for begin, end in pairwise(ends)
    ]
    left = task.time_remaining - (task.get_time() - samples[-1].timestamp)
    return f"{clock_word(left)} left" if left > 0 and max(speeds) <= _STEADY * min(speeds) else ""


@contextlib.contextmanager
def repetition(act: Callable[[], None], every: float, first: float | None = None) -> Iterator[None]:
    """Call ``act`` every so many seconds, first after so many, in a thread of its own."""
    over = threading.Event()

    def repeat() -> None:
        wait = every if first is None else first
        while not over.wait(wait):
            act()
            wait = every

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
