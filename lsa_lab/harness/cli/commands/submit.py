"""``submit``: the same as ``run``, by tasks of SLURM or of this machine."""

import argparse
import dataclasses
import re
import shutil
from collections.abc import Sequence

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli import tasks
from lsa_lab.harness.cli.jobs import jobs_of, words_of
from lsa_lab.harness.cli.tasks import ENGINES, Task
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process
from lsa_lab.harness.run.checks import nearest

_HEAD = ("TASK", "TIER", "STATE", "SINCE", "LOG")
_NEW = ("tier", "seeds", "model", "out", "engine", "shares")  # options of a new submission


def obey(options: argparse.Namespace) -> int:
    """What run does, to the same bits: one task an experiment, in an array of SLURM's by submitit,
    or as processes of this machine. --status shows every task: waiting, running, done, failed (its
    log says why) or dead (its process is gone). --again submits those that failed or died, alone,
    and each goes on from its checkpoint; at SLURM's time limit a task does so by itself."""
    if options.status or options.again:
        return _later(options)
    new = _new(options)
    for folder in {task.folder for task in new}:
        shutil.rmtree(folder, ignore_errors=True)
    _hand_over(options, new)
    return 0


def _new(options: argparse.Namespace) -> list[Task]:
    """The tasks of the names; refuses what could not be run, or is on its way already."""
    engine = options.engine or ENGINES[0]
    flags = dict(_flag(word) for word in options.slurm or [])
    _check_engine(engine, flags)
    shares = 1 if options.shares is None else options.shares
    if shares < 1:
        raise RefusalError(f"--shares {shares}: choose a whole number of at least 1; nearest 1")
    jobs = jobs_of(options)
    new = []
    for job in jobs:
        folder, words = str(tasks.folder_of(job.identity)), words_of(options, [job])
        task = Task(folder, job.experiment.name, job.tier, words, engine, flags, shares=shares)
        new += [dataclasses.replace(task, share=share) for share in range(shares)]
    if engine == "local" and len(jobs) > 1 and len(new) > process.cores():
        raise RefusalError(
            f"{len(new)} tasks would start at once on {process.cores()} cores: submit fewer, or "
            f"{options.program} run, which computes one experiment after the other"
        )
    for task, state, _ in tasks.everything():
        if task.folder in {each.folder for each in new} and state in ("waiting", "running"):
            raise RefusalError(
                f"{task.name} ({task.tier}) is {state} as job {task.job} of {task.engine}: wait "
                "for it, or end it"
            )
    return new


def _check_engine(engine: str, flags: dict) -> None:
    """Refuse an engine that is none, or is not on this machine."""
    if engine not in ENGINES:
        best, listed = nearest(engine, ENGINES), ", ".join(ENGINES)
        raise RefusalError(f"unknown engine {engine!r}: nearest {best!r}; there are {listed}")
    if engine == "local":
        if flags:
            raise RefusalError("--slurm is SLURM's: leave it out of --engine local")
        return
    try:
        tasks.submitit()
    except ImportError as error:
        raise RefusalError(str(error)) from None
    if not (shutil.which("sbatch") and shutil.which("srun")):
        raise RefusalError(
            "there is no SLURM on this machine (no sbatch): go to one that has it, or choose "
            "--engine local, which is this machine"
        )


def _flag(word: str) -> tuple[str, str | bool]:
    """KEY=VALUE, and a KEY alone for a flag that takes no value."""
    key, equals, value = word.partition("=")
    if not re.fullmatch(r"[a-z][a-z_-]*", key) or (equals and not value):
        raise RefusalError(f"--slurm {word}: write KEY=VALUE, a flag of sbatch without its dashes")
    return key, value if equals else True


def _hand_over(options: argparse.Namespace, new: Sequence[Task]) -> None:
    try:
        given = tasks.hand_over(new)
    except (RuntimeError, ValueError, OSError) as error:
        words = str(error).replace("sbatch: error: ", "").strip().splitlines()
        raise RefusalError(f"{new[0].engine} takes no task: {'; '.join(words)}") from None
    for task in given:
        print(f"{task.name} ({task.tier}): job {task.job}, log {task.log}")
    package = command_options.package_words(options)
    print(f"to see where they stand: {options.program} submit --status{package}")


def _later(options: argparse.Namespace) -> int:
    """--status, and --again; refuses what is of a new submission."""
    command_options.named(options)
    given = [f"--{word}" for word in _NEW if vars(options)[word] is not None] + options.changes[:1]
    given += ["--again"] if options.status and options.again else []
    if given:
        words = "leave it out of --status and --again"
        raise RefusalError(f"{given[0]} is of a new submission: {words}")
    names = set(options.names) - {"all"}
    rows = [row for row in tasks.everything() if not names or row[0].experiment in names]
    if options.status:
        print("\n".join(_table(rows)) if rows else "nothing has been submitted")
        return 0
    over = [task for task, state, _ in rows if state in ("failed", "dead")]
    flags = dict(_flag(word) for word in options.slurm or [])
    for task in over:
        _check_engine(task.engine, flags)
    for task in over:
        _hand_over(options, [dataclasses.replace(task, flags=task.flags | flags)])
    if not over:
        print("no task has failed or died")
    return 0


def _table(tasks_: Sequence[tuple[Task, str, str]]) -> list[str]:
    rows = [_HEAD, *((t.name, t.tier, state, since, t.log) for t, state, since in tasks_)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    # The path of a log stays whole, whatever the terminal's width.
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
