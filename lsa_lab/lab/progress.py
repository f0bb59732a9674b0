"""Progress of a run: bars on a terminal, a line now and then in a log."""

import contextlib
import time
from typing import Any

FIRST, EVERY = 10.0, 60.0  # seconds to the first line of a log, and between two later ones


def show_progress() -> contextlib.AbstractContextManager[Any]:
    """Return a ``rich`` progress display; without a terminal its tasks are printed as lines.

    A task that begins with completed parts says where it resumes: at ``step``, if that is given.
    """
    from rich import progress as bars
    from rich.console import Console

    class Display(bars.Progress):
        next_line = time.monotonic() + FIRST

        def add_task(self, description, *, total, completed=0, step=0):  # type: ignore[override]
            if completed:
                place = f"step {step:,}" if step else f"{completed + 1} of {total}"
                place = f"{place.replace(',', ' ')} ({100 * completed / total:.0f} %)"
                print(f"  {description}: resuming at {place}", flush=True)
            return super().add_task(description, total=total, completed=completed)

        def update(self, task_id, **fields):
            super().update(task_id, **fields)
            task, now = self.tasks[task_id], time.monotonic()
            if self.disable and now > self.next_line and not task.finished:
                self.next_line = now + EVERY
                left = task.time_remaining
                more = f", {format_seconds(left)} left" if left else ""
                with contextlib.suppress(OSError):  # the run itself fails where nothing is read
                    print(f"  {task.description}: {task.percentage:.0f} %{more}", flush=True)

    console = Console(stderr=True)
    return Display(
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(20),
        bars.TaskProgressColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
        console=console,
        refresh_per_second=2,
        speed_estimate_period=600,
        transient=True,
        disable=not console.is_terminal,
    )


def format_seconds(seconds: float | None) -> str:
    """Return seconds as "12 s", "3 min" or "2.5 h"; "?" if they are not known."""
    if seconds is None:
        return "?"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
