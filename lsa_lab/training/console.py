"""Progress bar, log and Ctrl-C of a long computation."""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rich.progress import Progress

    from lsa_lab.training.plan import Plan

# Windows knows no SIGHUP.
_SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


def make_reporter(
    plan: "Plan", log: str | Path | None, progress: "Progress | None", done: int
) -> Callable:
    """Return a function that reports each chunk to the bar and to the log, after ``done`` steps.

    The loss is the median over the runs that have not diverged of the mean over the chunk.
    """
    label, steps, runs = plan.training.label, plan.training.steps, plan.num_runs
    logged = 0
    if log is not None:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        lines = _drop_partial_line(Path(log))
        logged = _last_logged(lines, label) if done else 0
    bar, name = None, label or "training"
    if progress is not None:
        # Displays of lsa_lab.lab say at which step a training resumes.
        task = progress.add_task(name, total=runs * steps, completed=runs * done, step=done)
        bar = partial(progress.update, task)

    def report(step: int, losses: np.ndarray, seconds: float) -> None:  # losses [runs alive, chunk]
        alive = len(losses)
        loss = float(np.median(losses.mean(1))) if alive else None
        if bar is not None:
            text = f"{name}: loss {loss:.4g}" if alive else f"{name}: no loss"
            text += f", {runs - alive} diverged" if alive < runs else ""
            bar(completed=runs * (step if alive else steps), description=text)
        if log is not None and step > logged:
            line = {"label": label, "step": step, "loss": loss, "diverged": runs - alive}
            with open(log, "a") as file:
                file.write(json.dumps(line | {"seconds": round(seconds, 6)}) + "\n")

    return report


def log(line: str) -> None:
    """Write a line to stderr; stdout is for results."""
    print(line, file=sys.stderr)


def _drop_partial_line(log: Path) -> list[bytes]:
    """Cut off a line that was not written to its end, and return the whole lines."""
    content = log.read_bytes() if log.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(log, len(whole))
    return whole.splitlines()


def _last_logged(lines: list[bytes], label: str) -> int:
    step = 0
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, KeyError):  # a damaged line is passed over
            entry = json.loads(line)
            step = entry["step"] if entry["label"] == label else step
    return step


@contextlib.contextmanager
def interrupts_wait() -> Iterator[threading.Event]:
    """Let Ctrl-C, a request to end (SIGTERM) and a lost terminal (SIGHUP) set the event that this
    yields, and act only at the end: as KeyboardInterrupt, the others as SystemExit of 128 + signal.

    A second signal acts at once. Outside the main thread, and for signals that are ignored, nothing
    changes.
    """
    interrupt, received, handlers = threading.Event(), list[int](), {}
    if threading.current_thread() is threading.main_thread():
        every = {number: signal.getsignal(number) for number in _SIGNALS}
        handlers = {n: how for n, how in every.items() if how not in (None, signal.SIG_IGN)}

    def restore() -> None:
        for number, how in handlers.items():
            signal.signal(number, how)

    def wait(number: int, frame: object) -> None:
        received.append(number)
        interrupt.set()
        restore()

    for number in handlers:
        signal.signal(number, wait)
    try:
        yield interrupt
    finally:
        restore()
    if received and received[0] != signal.SIGINT:
        raise SystemExit(128 + received[0])
    if received:
        raise KeyboardInterrupt
