"""Where the tasks of every submission stand, asked of the engine and of what they have written."""

import subprocess
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from lsa_lab.harness.cli import submissions
from lsa_lab.harness.cli.submissions import Submission, Task
from lsa_lab.store import safe_files


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


def standings() -> list[Standing]:
    """Where every task stands, in the order of submission; of one that was submitted anew later,
    the later one alone."""
    everything = [
        submissions.read(file.parent)
        for file in sorted(submissions.root().glob("*/submission.json"))
    ]
    latest = {task.identity: each.folder for each in everything for task in each.tasks}
    queue = _queue() if any(each.engine == "slurm" for each in everything) else None
    return [
        _standing(each, number, queue)
        for each in everything
        for number, task in enumerate(each.tasks)
        if latest[task.identity] == each.folder
    ]


def _standing(submission: Submission, number: int, queue: dict[str, str] | None) -> Standing:
    entry = submissions.load(submission.folder / "jobs.json").get(str(number), {})
    place, job = submissions.place_of(submission, number), entry.get("job", "")
    said = submissions.load(place)
    state = _state(submission.engine, place, job, said.get("state"), queue)
    first = number - submission.tasks[number].share
    leader = submissions.load(submissions.place_of(submission, first))
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
