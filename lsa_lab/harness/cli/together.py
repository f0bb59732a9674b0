"""Experiments side by side, each in a process that does nothing else at the time.

The results are those of ``series``, to the bit: an experiment's numbers depend on nothing that
happens beside it. A process that is done with an experiment takes the next one, the longest first;
after one that took much memory a fresh process does.

A worker, ``python -m`` this module, is handed command lines of ``run``, one experiment each, as
lines of JSON; how far it is, and in the end what came of it, are lines of JSON too, which begin
with a mark. What else is printed is text. Where nobody can hand it anything any more, it ends.
"""

import contextlib
import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from rich.console import Console
from rich.progress import TaskID

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli.jobs import jobs_of
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process, progress, series
from lsa_lab.harness.run.outcomes import Outcome, comparison
from lsa_lab.harness.run.runner import Job
from lsa_lab.training.console import interrupts_wait

_ANSWER = "\x1e"  # begins what a worker answers
_POLL = 0.2  # seconds between two looks at what is asked for
_EVERY = 0.5  # and between two answers of a worker on how far it is


class LostError(RuntimeError):
    """A process ended without a result, and the others have stopped; ``jobs`` are not done."""

    def __init__(self, message: str, jobs: Sequence[Job]):
        super().__init__(message)
        self.jobs = jobs


def run(jobs: list[Job], count: int, words_of: Callable[[Job], list[str]]) -> int:
    """Carry the jobs out, ``count`` at a time, each by the words of a command line; the exit status
    is that of ``series``.

    Ctrl-C, and an experiment whose process ends, stop the others at a checkpoint.
    """
    crew = _Crew(jobs, count, words_of)
    series.say(crew.console, *series.forecasts(jobs))
    try:
        with interrupts_wait() as interrupt, progress.screen(crew.bars):
            crew.work(interrupt.is_set)
    except KeyboardInterrupt:
        if crew.unfinished:
            raise series.Unfinished(crew.unfinished) from None
    finally:
        for worker in crew.workers:
            worker.end()
    if crew.lost:
        raise LostError(crew.lost, crew.unfinished)
    names = [job.experiment.name for job in jobs if job.experiment.name in crew.outcomes]
    series.say(crew.console, *comparison({name: crew.outcomes[name] for name in names}))
    return max(crew.statuses.values())


class _Worker:
    """A process of ``main``. It has a session of its own: Ctrl-C reaches it by ``stop``."""

    def __init__(self, lines: "SimpleQueue[tuple[_Worker, str | None]]"):
        self.job: Job | None = None
        self.bar = TaskID(0)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lsa_lab.harness.cli.together"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def take(self, job: Job, words: Sequence[str]) -> None:
        """Begin a job."""
        self.job = job
        with contextlib.suppress(BrokenPipeError):  # its status will tell
            print(json.dumps(words), file=self._process.stdin, flush=True)

    def stop(self) -> None:
        """It ends, at the next checkpoint of the job that it has."""
        if self._process.poll() is None:
            posix = os.name == "posix"
            self._process.send_signal(signal.SIGINT if posix else signal.SIGTERM)

    def end(self) -> int:
        """The process is gone, and of a job that it still had, what follows on the checkpoint."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            return self._process.wait(0 if self.job else 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _read(self, lines: "SimpleQueue[tuple[_Worker, str | None]]") -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in stdout:
                lines.put((self, line.rstrip()))
        lines.put((self, None))


class _Crew:
    def __init__(self, jobs: list[Job], count: int, words_of: Callable[[Job], list[str]]):
        self.console = Console()
        self.bars = progress.bars(self.console)
        self.outcomes: dict[str, Outcome] = {}
        self.statuses: dict[str, int] = {}  # of those that are over
        self.workers: list[_Worker] = []
        self.lost = ""
        self._jobs, self._count, self._words_of = jobs, count, words_of
        # One that was never measured may be the longest of all.
        self._waiting = sorted(
            jobs, key=lambda job: -series.last_facts(job).get("wall_time", math.inf)
        )
        self._lines: SimpleQueue[tuple[_Worker, str | None]] = SimpleQueue()
        self._whole = self.bars.add_task("all experiments", total=len(jobs), of_parts=True)
        self._stopping = False

    @property
    def unfinished(self) -> list[Job]:
        return [job for job in self._jobs if job.experiment.name not in self.statuses]

    def work(self, has_to_stop: Callable[[], bool]) -> None:
        """Until nothing waits and nobody is at work or, if it has to stop, until all have."""
        while True:
            if not self._stopping and (has_to_stop() or self.lost):
                self._stopping = True
                for worker in self.workers:
                    worker.stop()
            if not self._stopping:
                self._hand_out()
            if not any(worker.job for worker in self.workers):
                return
            with contextlib.suppress(Empty):
                self._hear(*self._lines.get(timeout=_POLL))

    def _hand_out(self) -> None:
        """A job for everybody who has none."""
        while self._waiting:
            free = [worker for worker in self.workers if worker.job is None]
            if not free and len(self.workers) == self._count:
                return
            if not free:
                free = [_Worker(self._lines)]
                self.workers += free
            job = self._waiting.pop(0)
            free[0].bar = self.bars.add_task(job.experiment.name, total=None)
            free[0].take(job, self._words_of(job))

    def _hear(self, worker: _Worker, line: str | None) -> None:
        job = worker.job
        name = job.experiment.name if job else "a process"
        if line is None:
            status = worker.end()
            self.workers = [each for each in self.workers if each is not worker]
            if job and not self._stopping:
                how = f"ended with status {status}"
                if status < 0:
                    why = ", as by a lack of memory" * (status == -9)
                    how = f"was ended by signal {-status}{why}"
                self.lost = f"{name} {how}, without a result"
        elif not line.startswith(_ANSWER):
            series.say(self.console, f"{name}: {line}")
        elif job:
            answer = json.loads(line.removeprefix(_ANSWER))
            if isinstance(answer, str):
                text = answer if answer.startswith(name) else f"{name}: {answer}"
                self.bars.update(worker.bar, description=text if answer else name)
            else:
                self._close(worker, name, *answer)

    def _close(
        self, worker: _Worker, name: str, facts: dict | None, status: int, text: str
    ) -> None:
        worker.job = None
        self.bars.remove_task(worker.bar)
        self.bars.advance(self._whole)
        self.statuses[name] = status
        series.say(self.console, text)
        if facts is None:
            return
        self.outcomes[name] = Outcome(**facts)
        if (facts["facts"]["memory"] or 0) > _memory() / (2 * self._count):
            self.workers.remove(worker)
            worker.end()


def _memory() -> float:
    """Bytes of this machine; without limit where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf


def main() -> int:
    """Until nothing more comes; 130 after an interruption."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a script's background
    try:
        with process.interrupts_return():
            process.configure()  # imports jax, whose callbacks may lose an interrupt
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

    with progress.repetition(tell, _EVERY):
        try:
            outcome, status, text = series.attempt(job, bars)
        except RefusalError as error:
            outcome, status, text = None, 1, f"error: {error}"
    _answer([outcome and dataclasses.asdict(outcome), status, text])


def _answer(value: Any) -> None:
    sys.stdout.write(f"{_ANSWER}{json.dumps(value)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
