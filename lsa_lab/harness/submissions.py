"""Tasks handed to SLURM or to this machine by submitit: what each is, and where it stands.

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
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

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


class Standing(NamedTuple):
    """Where a task stands: waiting, running, done, failed (its log says why), dead (its process
    ended without a word), or unknown, where the engine cannot be asked."""

    submission: Submission
    number: int
    job: str
    state: str
    since: str
    log: Path

    @property
    def task(self) -> Task:
        return self.submission.tasks[self.number]


@dataclass(frozen=True)
class Worker:
    """What the engine's process calls: a task by its number."""

    folder: Path
    number: int

    def __call__(self) -> None:
        """``run`` the task's words, and leave beside them how that ended."""
        from lsa_lab.harness.command_line import main

        submission = _read(self.folder)
        task, place = submission.tasks[self.number], _place(submission, self.number)
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
        if all(_load(_place(submission, i)).get("state") == "done" for i in group):
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
    folder = _root() / f"{datetime.now():%Y%m%d-%H%M%S}"
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
        _place(submission, number).unlink(missing_ok=True)
    with _nobody_listening():
        jobs = executor.submit_array([Worker(submission.folder, number) for number in numbers])
    entries = _load(submission.folder / "jobs.json")
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


def standings() -> list[Standing]:
    """Where every task stands, in the order of submission; of one that was submitted anew later,
    the later one alone."""
    submissions = [_read(file.parent) for file in sorted(_root().glob("*/submission.json"))]
    latest = {task.identity: each.folder for each in submissions for task in each.tasks}
    queue = _queue() if any(each.engine == "slurm" for each in submissions) else None
    return [
        _standing(each, number, queue)
        for each in submissions
        for number, task in enumerate(each.tasks)
        if latest[task.identity] == each.folder
    ]


def _standing(submission: Submission, number: int, queue: dict[str, str] | None) -> Standing:
    entry = _load(submission.folder / "jobs.json").get(str(number), {})
    place, job = _place(submission, number), entry.get("job", "")
    said = _load(place)
    state = _state(submission.engine, place, job, said.get("state"), queue)
    leader = _load(_place(submission, number - submission.tasks[number].share))
    if leader.get("state") == "done":  # it has the whole result
        state = "done"
    since, log = said.get("since", entry.get("since", "")), Path(entry.get("log", ""))
    if state == "dead" and log.is_file():  # the last sign of life
        since = datetime.fromtimestamp(log.stat().st_mtime).isoformat(timespec="minutes")
    return Standing(submission, number, job, state, since, log)


def _state(
    engine: str, place: Path, job: str, said: str | None, queue: dict[str, str] | None
) -> str:
    if said in ("done", "failed"):
        return said
    if engine == "slurm":
        if queue is None:
            return "unknown"
        if job not in queue:
            return "dead"
        return "running" if queue[job] in ("RUNNING", "COMPLETING") else "waiting"
    if said == "running":
        return said if safe_files.is_owned(place) else "dead"
    return "waiting" if job and safe_files.is_alive(int(job)) else "dead"


def _queue() -> dict[str, str] | None:
    """{job: its state} of what SLURM has of this user and has not ended; None if it is not there.

    squeue, and not sacct that submitit asks: many a small cluster keeps no accounts.
    """
    words = ["squeue", "--me", "--array", "--noheader", "--format=%i %T"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(line.split() for line in done.stdout.splitlines())


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


def _root() -> Path:
    return cache().absolute() / "submitted"


def _now() -> str:
    return datetime.now().isoformat(timespec="minutes")


def _read(folder: Path) -> Submission:
    facts = json.loads((folder / "submission.json").read_text(encoding="utf-8"))
    tasks = tuple(Task(**task) for task in facts.pop("tasks"))
    return Submission(folder=folder, tasks=tasks, **facts)


def _save(submission: Submission) -> None:
    facts = dataclasses.asdict(submission)
    del facts["folder"]
    _write(submission.folder / "submission.json", facts)


def _place(submission: Submission, number: int) -> Path:
    return submission.folder / f"{number}.json"


def _exchange(submission: Submission, task: Task) -> Path:
    return submission.folder / task.identity


def _load(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def _write(path: Path, facts: dict) -> None:
    safe_files.write(path, json.dumps(facts, indent=2).encode())
