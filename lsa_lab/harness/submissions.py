"""Tasks handed to SLURM or to this machine by submitit: what each is, and what its process does.

A submission is a folder of the cache, ``submitted/DATE``. In it ``submission.json`` says what was
submitted, ``jobs.json`` what the engine calls it, and ``N.json`` what task N says of itself. The
pickles beside them are submitit's own: they hold this folder and the number of a task, and nothing
but submitit writes or reads them.
"""

import contextlib
import dataclasses
import io
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from lsa_lab import extras, safe_files
from lsa_lab.cache import cache
from lsa_lab.harness import process

ENGINES = ("slurm", "local")
_HEARTBEAT = 300.0  # seconds: a network disk may show a file of another machine a minute late


@dataclass(frozen=True)
class Task:
    """One experiment at one configuration, or a share of its runs, as one process of the engine
    runs it."""

    experiment: str
    tier: str
    identity: str  # of the experiment and its configuration
    words: list[str]  # of the command line that runs it
    share: int = 0
    shares: int = 1

    @property
    def name(self) -> str:
        return self.experiment + (f" {self.share + 1}/{self.shares}" if self.shares > 1 else "")


@dataclass(frozen=True)
class Submission:
    """Tasks that were submitted together, and what submitit was told of them."""

    folder: Path
    engine: str
    parameters: dict[str, Any]  # submitit's own
    flags: dict[str, Any]  # of sbatch, beside those
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Worker:
    """What the engine's process calls: a task by its number."""

    folder: Path
    number: int

    def __call__(self) -> None:
        """``run`` the task's words, and leave beside them how that ended."""
        from lsa_lab.harness.command_line import main

        submission = read(self.folder)
        task, place = submission.tasks[self.number], place_of(submission, self.number)
        with safe_files.owned(place):
            _write(place, {"state": "running", "since": _now()})
            try:
                with _beside_the_others(submission, task):
                    status = main(task.words)
            except Exception:
                _write(place, {"state": "failed", "since": _now()})
                raise
            if status in (0, 1, 2):
                _write(place, {"state": "failed" if status else "done", "since": _now()})
        if status:
            raise SystemExit(status)
        group = [i for i, t in enumerate(submission.tasks) if t.identity == task.identity]
        if all(load(place_of(submission, i)).get("state") == "done" for i in group):
            shutil.rmtree(_exchange(submission, task), ignore_errors=True)

    def checkpoint(self) -> Any:
        """What takes its place after SLURM's time limit: the same, which goes on."""
        return submitit().helpers.DelayedSubmission(self)


def submitit() -> ModuleType:
    """The package, or an ImportError that names its extra; the logging of this process stays as it
    is: submitit would configure it, which closes the handlers of others, absl's among them."""
    with _environment("SUBMITIT_LOG_LEVEL", "NOCONFIG"):
        return extras.package("submitit", "cluster")


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
    from lsa_lab import hosts

    folder = _exchange(submission, task)
    return hosts.use(hosts.Folder(folder, task.share, task.shares, heartbeat=_HEARTBEAT))


def new(engine: str, parameters: dict, flags: dict, tasks: Sequence[Task]) -> Submission:
    """A submission with a folder of its own, which nobody works on yet."""
    folder = root() / f"{datetime.now():%Y%m%d-%H%M%S}"
    while folder.exists():  # another one of the same second
        folder = folder.with_name(f"{folder.name}+")
    submission = Submission(folder, engine, parameters, flags, tuple(tasks))
    _save(submission)
    return submission


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
        entries[str(number)] = {"job": job.job_id, "since": _now(), "log": log}
    _write(submission.folder / "jobs.json", entries)


def changed(submission: Submission, parameters: dict, flags: dict) -> Submission:
    """The same submission with other words for submitit, wherever they are given."""
    submission = dataclasses.replace(
        submission,
        parameters=submission.parameters | parameters,
        flags=submission.flags | flags,
    )
    _save(submission)
    return submission


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


def root() -> Path:
    """The folder of all submissions."""
    return cache().absolute() / "submitted"


def _now() -> str:
    return datetime.now().isoformat(timespec="minutes")


def read(folder: Path) -> Submission:
    """The submission that lies in a folder."""
    facts = json.loads((folder / "submission.json").read_text(encoding="utf-8"))
    tasks = tuple(Task(**task) for task in facts.pop("tasks"))
    return Submission(folder=folder, tasks=tasks, **facts)


def _save(submission: Submission) -> None:
    facts = dataclasses.asdict(submission)
    del facts["folder"]
    _write(submission.folder / "submission.json", facts)


def place_of(submission: Submission, number: int) -> Path:
    """The file in which a task says how it fares."""
    return submission.folder / f"{number}.json"


def _exchange(submission: Submission, task: Task) -> Path:
    return submission.folder / task.identity


def load(path: Path) -> dict:
    """What a file says, nothing where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def _write(path: Path, facts: dict) -> None:
    safe_files.write(path, json.dumps(facts, indent=2).encode())
