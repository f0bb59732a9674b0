"""A process that carries out experiments for ``together``.

It is handed command lines of ``run``, one experiment each, as lines of JSON; how far it is, and in
the end what came of it, are lines of JSON too, which begin with a mark. What else is printed is
text. Where nobody can hand it anything any more, it ends.
"""

import dataclasses
import json
import signal
import sys
from typing import Any

from rich.console import Console

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli.jobs import jobs_of
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process, progress, series
from lsa_lab.harness.run.together import ANSWER

_EVERY = 0.5  # seconds between two answers on how far it is


def main() -> int:
    """Until nothing more comes; 130 after an interruption."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a script's background
    process.configure()
    try:
        for line in sys.stdin:
            _carry_out(json.loads(line))
    except KeyboardInterrupt:
        return 130
    return 0


def _carry_out(words: list[str]) -> None:
    options = command_options.parse(words)
    options.program, options.home = "lsa-lab", options.package or "experiments"
    options.package = options.home
    (job,) = jobs_of(options)
    bars = progress.bars(Console(force_terminal=False))

    def tell() -> None:
        parts = [progress.words(task) for task in bars.tasks[1:] if not task.finished]
        _answer(parts[-1] if parts else "")

    with progress.repeated(tell, _EVERY):
        try:
            outcome, status, text = series.attempt(job, bars)
        except RefusalError as error:
            outcome, status, text = None, 1, f"error: {error}"
    _answer([outcome and dataclasses.asdict(outcome), status, text])


def _answer(value: Any) -> None:
    sys.stdout.write(f"{ANSWER}{json.dumps(value)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
