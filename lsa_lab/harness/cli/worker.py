"""A process that carries out experiments for ``together``.

It is handed command lines of ``run``, one experiment each, as lines of JSON, and answers the same
way; whatever else is printed goes to stderr. Where nobody can hand it anything any more, it stops
as after Ctrl-C: its parent wants that, or is gone.
"""

import dataclasses
import functools
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from rich.console import Console

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli.jobs import jobs_of
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process, series
from lsa_lab.harness.run.clock import Clock
from lsa_lab.harness.run.estimate import past_of
from lsa_lab.harness.run.progress import Bars, repeated
from lsa_lab.harness.run.runner import NotJudgedError, run_one
from lsa_lab.store.safe_files import OwnedError
from lsa_lab.training import console
from lsa_lab.training.status import DivergedError

_EVERY = 0.5  # seconds between two answers on how far it is


def main() -> int:
    """Until nothing more comes; 130 after an interruption."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a script's background
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    busy, stopped, lock = threading.Event(), threading.Event(), threading.Lock()
    threading.Thread(target=_listen, args=(lines, busy, stopped), daemon=True).start()
    process.configure()

    def answer(kind: str, value: Any) -> None:
        with lock:
            print(json.dumps([kind, value]), file=answers, flush=True)

    try:
        while line := lines.get():
            busy.set()
            if stopped.is_set():
                break
            kind, value = _carry_out(json.loads(line), answer)
            busy.clear()
            answer(kind, value)
    except KeyboardInterrupt:
        return 130
    return 0


def _listen(
    lines: "queue.SimpleQueue[bytes]", busy: threading.Event, stopped: threading.Event
) -> None:
    with open(0, "rb", buffering=0, closefd=False) as file:
        while line := file.readline():
            lines.put(line)
    stopped.set()
    lines.put(b"")
    if busy.is_set():
        console.interrupt()


def _carry_out(words: list[str], answer: Callable[[str, Any], None]) -> tuple[str, Any]:
    options = command_options.parse(words)
    options.program, options.home = "lsa-lab", options.package or "experiments"
    options.package = options.home
    (job,) = jobs_of(options)
    past = past_of(job)
    bars = Bars(Clock([past]))
    say = functools.partial(series.say, Console(file=sys.stderr))

    def tell() -> None:
        left = bars.clock.left_of_this()
        answer("rows", [bars.rows(), left])

    def learn() -> None:
        say(*bars.estimates())

    with bars.experiment(job.experiment.name, past), repeated(tell, _EVERY), repeated(learn, 1.0):
        try:
            outcome = run_one(job, bars)
        except (NotJudgedError, OwnedError, RefusalError) as error:
            return "error", f"error: {error}"
        except DivergedError as error:
            return "diverged", series.diverged(job, error)
    return "outcome", dataclasses.asdict(outcome)


if __name__ == "__main__":
    sys.exit(main())
