"""Tasks that are handed to an engine: what each is, and the files in which that stands.

A submission is a folder of the cache, ``submitted/DATE``. In it ``submission.json`` says what was
submitted, ``jobs.json`` what the engine calls it, and ``N.json`` what task N says of itself. The
pickles beside them are submitit's own: they hold this folder and the number of a task, and nothing
but submitit writes or reads them.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lsa_lab.store import safe_files
from lsa_lab.store.cache import cache


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


def new(engine: str, parameters: dict, flags: dict, tasks: Sequence[Task]) -> Submission:
    """A submission with a folder of its own, which nobody works on yet."""
    folder = root() / f"{datetime.now():%Y%m%d-%H%M%S}"
    while folder.exists():  # another one of the same second
        folder = folder.with_name(f"{folder.name}+")
    submission = Submission(folder, engine, parameters, flags, tuple(tasks))
    _save(submission)
    return submission


def changed(submission: Submission, parameters: dict, flags: dict) -> Submission:
    """The same submission with other words for submitit, wherever they are given."""
    submission = dataclasses.replace(
        submission,
        parameters=submission.parameters | parameters,
        flags=submission.flags | flags,
    )
    _save(submission)
    return submission


def root() -> Path:
    """The folder of all submissions."""
    return cache().absolute() / "submitted"


def now() -> str:
    return datetime.now().isoformat(timespec="minutes")


def read(folder: Path) -> Submission:
    """The submission that lies in a folder."""
    facts = json.loads((folder / "submission.json").read_text(encoding="utf-8"))
    tasks = tuple(Task(**task) for task in facts.pop("tasks"))
    return Submission(folder=folder, tasks=tasks, **facts)


def _save(submission: Submission) -> None:
    facts = dataclasses.asdict(submission)
    del facts["folder"]
    write(submission.folder / "submission.json", facts)


def place_of(submission: Submission, number: int) -> Path:
    """The file in which a task says how it fares."""
    return submission.folder / f"{number}.json"


def exchange(submission: Submission, task: Task) -> Path:
    return submission.folder / task.identity


def load(path: Path) -> dict:
    """What a file says, nothing where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def write(path: Path, facts: dict) -> None:
    safe_files.write(path, json.dumps(facts, indent=2).encode())
