"""What hands tasks to SLURM or to this machine, submitit, and what the process of a task does."""

import contextlib
import io
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from lsa_lab.harness.cli.submissions import (
    Submission,
    Task,
    exchange,
    load,
    now,
    place_of,
    read,
    write,
)
from lsa_lab.harness.run import process
from lsa_lab.store import provenance, safe_files

ENGINES = ("slurm", "local")
_HEARTBEAT = 300.0  # seconds: a network disk may show a file of another machine a minute late


@dataclass(frozen=True)
class Worker:
    """What the engine's process calls: a task by its number."""

    folder: Path
    number: int

    def __call__(self) -> None:
        """``run`` the task's words, and leave beside them how that ended."""
        from lsa_lab.harness.cli.command_line import main

        submission = read(self.folder)
        task, place = submission.tasks[self.number], place_of(submission, self.number)
        with safe_files.owned(place):
            write(place, {"state": "running", "since": now()})
            try:
                with _beside_the_others(submission, task):
                    status = main(task.words)
            except Exception:
                write(place, {"state": "failed", "since": now()})
                raise
            if status in (0, 1, 2):
                write(place, {"state": "failed" if status else "done", "since": now()})
        if status:
            raise SystemExit(status)
        group = [i for i, t in enumerate(submission.tasks) if t.identity == task.identity]
        if all(load(place_of(submission, i)).get("state") == "done" for i in group):
            shutil.rmtree(exchange(submission, task), ignore_errors=True)

    def checkpoint(self) -> Any:
        """What takes its place after SLURM's time limit: the same, which goes on."""
        return submitit().helpers.DelayedSubmission(self)


def submitit() -> ModuleType:
    """The package, or an ImportError that names its extra; the logging of this process stays as it
    is: submitit would configure it, which closes the handlers of others, absl's among them."""
    with _environment("SUBMITIT_LOG_LEVEL", "NOCONFIG"):
        return provenance.package("submitit", "cluster")


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """The variable inside; a task that is started outside is not given it."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _beside_the_others(submission: Submission, task: Task) -> contextlib.AbstractContextManager:
    """The shares of one experiment exchange what they have computed through a folder."""
    if task.shares == 1:
        return contextlib.nullcontext()
    process.configure()  # before jax is imported
    from lsa_lab.store import processes

    folder = exchange(submission, task)
    return processes.use(processes.Folder(folder, task.share, task.shares, heartbeat=_HEARTBEAT))


def hand_over(submission: Submission, numbers: Sequence[int]) -> None:
    """Give these tasks to the engine; a task that it had before goes on from its checkpoint.

    Raises what submitit does where the engine refuses them.
    """
    executor = submitit().AutoExecutor(submission.folder, cluster=submission.engine)
    executor.update_parameters(**submission.parameters)
    others = {}
    for flag, value in submission.flags.items():
        try:
            executor.update_parameters(**{f"slurm_{flag.replace('-', '_')}": value})
        except NameError:  # submitit has no word for it, and sbatch may
            others[flag] = value
    if others:
        executor.update_parameters(slurm_additional_parameters=others)
    for number in numbers:
        place_of(submission, number).unlink(missing_ok=True)
    with _nobody_listening():
        jobs = executor.submit_array([Worker(submission.folder, number) for number in numbers])
    entries = load(submission.folder / "jobs.json")
    for number, job in zip(numbers, jobs, strict=True):
        log = os.path.relpath(job.paths.stdout)
        entries[str(number)] = {"job": job.job_id, "since": now(), "log": log}
    write(submission.folder / "jobs.json", entries)


@contextlib.contextmanager
def _nobody_listening() -> Iterator[None]:
    """Processes that start here do not hold the pipes of whoever called us open to their end, and
    submitit does not print what it raises."""
    saved = [os.dup(number) for number in (0, 1, 2)]
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        for number, before in enumerate(saved):
            os.dup2(before, number)
            os.close(before)
        os.close(nowhere)
