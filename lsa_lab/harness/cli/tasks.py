"""What ``submit`` hands to SLURM, by submitit, or to this machine: tasks, and where they stand.

A task is a file of the cache, ``submitted/IDENTITY/SHARE.json``; what its process says of itself
stands beside it, in ``SHARE.state.json``. submitit pickles tasks into ``submitted/slurm``, and
nothing but submitit writes or reads those.
"""

import contextlib
import dataclasses
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from lsa_lab.harness.run import process
from lsa_lab.store import provenance, safe_files
from lsa_lab.store.cache import cache

ENGINES = ("slurm", "local")
_DAY = 24 * 60  # minutes
_HEARTBEAT = 300.0  # seconds: a network disk may show a file of another machine a minute late


@dataclass(frozen=True)
class Task:
    """One experiment at one configuration, or a share of its runs, as one process runs it."""

    folder: str  # absolute, of this configuration alone
    experiment: str
    tier: str
    words: list[str]  # of the command line that runs it
    engine: str
    flags: dict[str, str | bool]  # of sbatch
    share: int = 0
    shares: int = 1
    job: str = ""  # what the engine calls it
    log: str = ""

    @property
    def name(self) -> str:
        return self.experiment + (f" {self.share + 1}/{self.shares}" if self.shares > 1 else "")

    @property
    def place(self) -> Path:
        return Path(self.folder, f"{self.share}.json")

    def __call__(self) -> None:
        """``run`` the words, and keep how that ended."""
        from lsa_lab.harness.cli.command_line import main

        with safe_files.owned(self.place):
            _write(_state(self.place), "running")
            try:
                with self._beside_the_others():
                    status = main(self.words)
            except Exception:
                _write(_state(self.place), "failed")
                raise
            if status < 4:  # not interrupted
                _write(_state(self.place), "failed" if status else "done")
        if status:
            raise SystemExit(status)
        if [*map(_read, Path(self.folder).glob("*.state.json"))] == self.shares * ["done"]:
            shutil.rmtree(self._exchange, ignore_errors=True)

    @property
    def _exchange(self) -> Path:
        """What the shares have computed goes through it."""
        return Path(self.folder, "exchange")

    def _beside_the_others(self) -> contextlib.AbstractContextManager:
        if self.shares == 1:
            return contextlib.nullcontext()
        process.configure()  # before jax is imported
        from lsa_lab.store import processes

        others = processes.Folder(self._exchange, self.share, self.shares, heartbeat=_HEARTBEAT)
        return processes.use(others)

    def checkpoint(self) -> Any:
        """What takes its place after SLURM's time limit: the same, which goes on."""
        return submitit().helpers.DelayedSubmission(self)

    def standing(self, queue: dict[str, str] | None) -> tuple[str, str]:
        """(waiting, running, done, failed, dead where its process ended without a word, or unknown
        where SLURM cannot be asked; since when)."""
        said, leader = _read(_state(self.place)), _read(_state(self.place.with_name("0.json")))
        if leader == "done" or said in ("done", "failed"):  # the leader has the whole result
            word = "done" if leader == "done" else said
        elif self.engine == "local":
            waits = not said and safe_files.is_alive(int(self.job or 0))
            word = said or "waiting" if waits or safe_files.is_owned(self.place) else "dead"
        elif queue is None:
            word = "unknown"
        else:
            running = queue.get(self.job) in ("RUNNING", "COMPLETING")
            word = "running" if running else "waiting" if self.job in queue else "dead"
        files = [Path(self.log)] if word == "dead" else [self.place, _state(self.place)]
        times = [file.stat().st_mtime for file in files if file.is_file()]
        since = datetime.fromtimestamp(max(times)).isoformat(" ", "minutes") if times else ""
        return word, since


def folder_of(identity: str) -> Path:
    return cache().absolute() / "submitted" / identity


def everything() -> list[tuple[Task, str, str]]:
    """Every task, by name, with its state and since when."""
    places = sorted(path for path in folder_of("").glob("*/*.json") if path.stem.isdigit())
    tasks = [Task(**_read(place)) for place in places]
    queue = _queue() if any(task.engine == "slurm" for task in tasks) else None
    return [(task, *task.standing(queue)) for task in tasks]


def hand_over(tasks: Sequence[Task]) -> list[Task]:
    """Give tasks of one submission to their engine; one that it had goes on from its checkpoint.

    Raises what submitit does where SLURM refuses them.
    """
    for task in tasks:
        safe_files.remove(_state(task.place))
    jobs = (_by_slurm if tasks[0].engine == "slurm" else _by_this_machine)(tasks)
    given = [
        dataclasses.replace(task, job=job, log=os.path.relpath(log))
        for task, (job, log) in zip(tasks, jobs, strict=True)
    ]
    for task in given:
        _write(task.place, dataclasses.asdict(task))
    return given


def _by_this_machine(tasks: Sequence[Task]) -> list[tuple[str, Path]]:
    """(process, log) of each; they outlive this process."""
    jobs = []
    for task in tasks:
        _write(task.place, dataclasses.asdict(task))
        log = task.place.with_suffix(".log")
        with open(log, "a", encoding="utf-8") as file:
            started = subprocess.Popen(
                [sys.executable, "-m", "lsa_lab.harness.cli.tasks", str(task.place)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        jobs.append((str(started.pid), log))
    return jobs


def _by_slurm(tasks: Sequence[Task]) -> list[tuple[str, Path]]:
    """(job, log) of each, elements of one array."""
    flags = {key.replace("-", "_"): value for key, value in tasks[0].flags.items()}
    # What SLURM allots to a job is no longer, from 22.05 on, what it gives a process in it.
    srun = [f"--cpus-per-task={flags['cpus_per_task']}"] if "cpus_per_task" in flags else []
    executor = submitit().AutoExecutor(folder_of("slurm"), cluster="slurm")
    executor.update_parameters(
        name="lsa-lab",
        timeout_min=_DAY,  # submitit's own limit is five minutes
        stderr_to_stdout=True,
        slurm_array_parallelism=int(flags.pop("array_parallelism", len(tasks))),
        slurm_srun_args=srun,
        slurm_additional_parameters=flags,
    )
    with contextlib.redirect_stderr(io.StringIO()):  # it prints what it raises
        return [(job.job_id, job.paths.stdout) for job in executor.submit_array(list(tasks))]


def submitit() -> ModuleType:
    """The package, or an ImportError that names its extra; the logging of this process stays as it
    is: submitit would configure it, which closes the handlers of others, absl's among them."""
    os.environ["SUBMITIT_LOG_LEVEL"] = "NOCONFIG"
    try:
        return provenance.package("submitit", "cluster")
    finally:
        del os.environ["SUBMITIT_LOG_LEVEL"]


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


def _state(place: Path) -> Path:
    return place.with_suffix(".state.json")


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def _write(path: Path, facts: Any) -> None:
    safe_files.write(path, json.dumps(facts, indent=2).encode())


if __name__ == "__main__":
    Task(**_read(Path(sys.argv[1])))()
