"""Experiments side by side, each in a process that does nothing else at the time.

The results are those of ``series``, to the bit: an experiment's numbers depend on nothing that
happens beside it. A process that is done with an experiment takes the next one, the longest first;
after one that took much memory a fresh process does.
"""

import os
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from rich.console import Console

from lsa_lab.harness.run import series
from lsa_lab.harness.run.clock import Left
from lsa_lab.harness.run.estimate import beforehand, past_of
from lsa_lab.harness.run.outcomes import Outcome, comparison
from lsa_lab.harness.run.progress import Row, screen
from lsa_lab.harness.run.runner import Job
from lsa_lab.harness.run.workers import Answer, Worker
from lsa_lab.harness.run.workload import Workload
from lsa_lab.training.console import interrupts_wait

_POLL = 0.2  # seconds between two looks at what is asked for
_INTERRUPTED = 130  # the status of a worker that has stopped at a checkpoint


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
    series.say(crew.console, *beforehand(jobs))
    try:
        with interrupts_wait() as interrupt, screen(crew.rows, crew.console):
            crew.work(interrupt.is_set)
        if crew.is_interrupted:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        if crew.unfinished:
            raise series.Unfinished(crew.unfinished, crew.begun) from None
    finally:
        crew.dismiss()
    if crew.lost:
        raise LostError(crew.lost, crew.unfinished)
    names = [job.experiment.name for job in jobs]
    outcomes = {name: crew.outcomes[name] for name in names if name in crew.outcomes}
    if outcomes:
        series.say(crew.console, comparison(outcomes))
    return max(crew.failures, default=0)


class _Crew:
    def __init__(self, jobs: list[Job], count: int, words_of: Callable[[Job], list[str]]):
        self.console = Console()
        self.outcomes: dict[str, Outcome] = {}
        self.begun: dict[str, list[Row]] = {}  # the rows of those that are not over
        self._lefts: dict[str, Left] = {}  # and their time left, where they have said it
        self.failures: list[int] = []
        self.lost, self.is_interrupted = "", False
        self._jobs, self._count, self._words_of = jobs, count, words_of
        self._pasts = {job.experiment.name: past_of(job) for job in jobs}
        self._load = Workload(self._pasts, count)
        longest = sorted(self._pasts, key=lambda name: -(self._load.seconds(name) or 0.0))
        self._waiting = sorted(jobs, key=lambda job: longest.index(job.experiment.name))
        self._workers: list[Worker] = []
        self._answers: SimpleQueue[Answer] = SimpleQueue()

    @property
    def unfinished(self) -> list[Job]:
        waiting = [job.experiment.name for job in self._waiting]
        return [job for job in self._jobs if job.experiment.name in [*self.begun, *waiting]]

    def rows(self) -> list[Row]:
        """The bar of all, then those of each experiment; parts say whose they are."""
        over = len(self._jobs) - len(self.unfinished)
        left = self._load.left(dict(self._lefts))
        text = f"all {len(self._jobs)} experiments, {over} done"
        rows = [Row(text, left.share(self._load.elapsed), self._load.elapsed, str(left))]
        for name, (own, *parts) in list(self.begun.items()):
            texts = [text if text.startswith(name) else f"{name}: {text}" for text, *_ in parts]
            rows += [own, *(p._replace(text=t) for p, t in zip(parts, texts, strict=True))]
        return rows

    def work(self, has_to_stop: Callable[[], bool]) -> None:
        """Until nothing waits and nobody is at work or, if it has to stop, until all have."""
        stopped = False
        while True:
            if not stopped and (has_to_stop() or self.lost or self.is_interrupted):
                stopped = True
                for worker in self._workers:
                    worker.stop()
            if not stopped:
                self._hand_out()
            if not any(worker.job for worker in self._workers):
                return
            try:
                self._hear(self._answers.get(timeout=_POLL), stopped)
            except Empty:
                continue

    def dismiss(self) -> None:
        for worker in self._workers:
            worker.end()

    def _hand_out(self) -> None:
        """A job for everybody who has none."""
        while self._waiting:
            free = [worker for worker in self._workers if worker.job is None]
            if not free and len(self._workers) == self._count:
                return
            worker = free[0] if free else Worker(self._answers)
            self._workers += [] if free else [worker]
            job = self._waiting.pop(0)
            name = job.experiment.name
            self.begun[name] = [Row(f"{name} ({self._pasts[name]})", None, 0.0)]
            self._load.begin(name)
            worker.take(job, self._words_of(job))

    def _hear(self, answer: Answer, stopped: bool) -> None:
        worker, value, job = answer.worker, answer.value, answer.worker.job
        name = job.experiment.name if job else "a process"
        if answer.kind == "text":
            series.say(self.console, f"{name}: {value}")
        elif answer.kind == "rows" and job:
            self.begun[name], self._lefts[name] = value
        elif answer.kind == "status":
            self._workers = [each for each in self._workers if each is not worker]
            worker.end()
            worker.job = None
            if job is None or stopped:
                return
            if value == _INTERRUPTED:
                self.is_interrupted = True
            else:
                self.lost = f"{name} {_ended(value)}, without a result"
        elif job:
            self._close(worker, job, answer)

    def _close(self, worker: Worker, job: Job, answer: Answer) -> None:
        name, worker.job = job.experiment.name, None
        del self.begun[name]
        self._lefts.pop(name, None)
        self._load.end(name)
        if answer.kind in ("error", "diverged"):
            self.failures.append(series.DIVERGED if answer.kind == "diverged" else 1)
            series.say(self.console, answer.value)
            return
        outcome = self.outcomes[name] = answer.value
        series.say(self.console, series.done(job, outcome))
        if (outcome.facts["memory"] or 0) > _memory() / (2 * self._count):
            worker.stop()
            self._workers.remove(worker)


def _ended(status: int) -> str:
    if status < 0:
        return f"was ended by signal {-status}" + (", as by a lack of memory" * (status == -9))
    return f"ended with status {status}"


def _memory() -> float:
    """Bytes of this machine; without limit where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")
