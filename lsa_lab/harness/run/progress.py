"""What a run says while it lasts: rich's bars on a terminal, plain lines in a log."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lsa_lab.harness.run.clock import clock_word

EVERY = 30.0  # seconds between two lines of a log


def bars(console: Console) -> Progress:
    """Bars with the time left at their own speed; without a terminal they are kept, not shown."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
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
            if task.visible and not task.finished:
                print(f"{words(task)}, {clock_word(task.elapsed or 0.0)} elapsed", flush=True)

    with progress, repetition(lines, EVERY) if progress.disable else contextlib.nullcontext():
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
    left = task.time_remaining
    return (
        task.description
        + ("" if task.total is None else f", {task.percentage:.0f} %")
        + (f", {clock_word(left)} left" if left and not task.finished else "")
    )


@contextlib.contextmanager
def repetition(act: Callable[[], None], every: float) -> Iterator[None]:
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
