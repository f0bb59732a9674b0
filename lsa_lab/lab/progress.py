"""Progress of a run: bars on a terminal, a line now and then in a log."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

FIRST, EVERY = 10.0, 60.0  # seconds to the first line of a log, and between two later ones


@contextlib.contextmanager
def show_progress() -> Iterator[Any]:
    """Yield a ``rich`` progress display; without a terminal its tasks are printed as lines."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    progress = Progress(
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
    over = threading.Event()

    def print_lines() -> None:
        wait = FIRST
        while not over.wait(wait):
            wait = EVERY
            for task in progress.tasks:
                if not task.finished and task.total:
                    left = task.time_remaining
                    more = f", {format_seconds(left)} left" if left else ""
                    with contextlib.suppress(OSError):  # the run itself says that none is written
                        print(f"  {task.description}: {task.percentage:.0f} %{more}", flush=True)

    thread = threading.Thread(target=print_lines, daemon=True)
    if progress.disable:
        thread.start()
    try:
        with progress:
            yield progress
    finally:
        over.set()


def format_seconds(seconds: float | None) -> str:
    """Return seconds as "12 s", "3 min" or "2.5 h"; "?" if they are not known."""
    if seconds is None:
        return "?"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
