"""``submit``: the same as ``run``, by tasks of SLURM or of this machine."""

import argparse
import shutil
from collections.abc import Sequence

from lsa_lab.harness.cli import engines, resources, submissions
from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli.engines import ENGINES
from lsa_lab.harness.cli.jobs import jobs_of, words_of
from lsa_lab.harness.cli.standings import Standing, standings
from lsa_lab.harness.cli.submissions import Submission, Task
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process
from lsa_lab.harness.run.checks import nearest

_HEAD = ("TASK", "TIER", "STATE", "SINCE", "LOG")
_NEW = ("tier", "seeds", "model", "out", "engine", "shares")  # options of a new submission


def obey(options: argparse.Namespace) -> int:
    """What run does, to the same bits, by submitit: one task an experiment, in an array of SLURM's
    or as processes of this machine. --status shows every task: waiting, running, done, failed (its
    log says why) or dead (its process is gone). --again submits those that failed or died, alone,
    and each goes on from its checkpoint; at SLURM's time limit a task does so by itself."""
    if options.status or options.again:
        stands = _standings(options)
        return _again(options, stands) if options.again else _show(stands)
    engine = options.engine or ENGINES[0]
    _check_engine(engine)
    parameters, flags = resources.of(options, engine)
    tasks = _tasks(options, engine)
    submission = submissions.new(engine, resources.usual(engine) | parameters, flags, tasks)
    try:
        _hand_over(options, submission, range(len(tasks)))
    except RefusalError:
        shutil.rmtree(submission.folder)
        raise
    return 0


def _tasks(options: argparse.Namespace, engine: str) -> list[Task]:
    """Those of the names; refuses what could not be run, or is on its way already."""
    for name in options.names:
        if options.names.count(name) > 1:
            raise RefusalError(f"{name} is named twice: leave one out")
    shares = 1 if options.shares is None else options.shares
    if shares < 1:
        raise RefusalError(f"--shares {shares}: choose a whole number of at least 1; nearest 1")
    jobs = jobs_of(options)
    tasks = [
        Task(job.experiment.name, job.tier, job.identity, words_of(options, [job]), share, shares)
        for job in jobs
        for share in range(shares)
    ]
    if engine == "local" and len(jobs) > 1 and len(tasks) > process.cores():
        raise RefusalError(
            f"{len(tasks)} tasks would start at once on {process.cores()} cores: submit fewer, or "
            f"{options.program} run, which computes one experiment after the other"
        )
    identities = {task.identity for task in tasks}
    for each in standings():
        if each.task.identity in identities and each.state in ("waiting", "running"):
            raise RefusalError(
                f"{each.task.name} ({each.task.tier}) is {each.state} as job {each.job} of "
                f"{each.submission.engine}: wait for it, or end it"
            )
    return tasks


def _check_engine(engine: str) -> None:
    """Refuse an engine that is none, or is not on this machine."""
    if engine not in ENGINES:
        best, listed = nearest(engine, ENGINES), ", ".join(ENGINES)
        raise RefusalError(f"unknown engine {engine!r}: nearest {best!r}; there are {listed}")
    try:
        engines.submitit()
    except ImportError as error:
        raise RefusalError(str(error)) from None
    if engine == "slurm" and not (shutil.which("sbatch") and shutil.which("srun")):
        raise RefusalError(
            "there is no SLURM on this machine (no sbatch): go to one that has it, or choose "
            "--engine local, which is this machine"
        )


def _hand_over(options: argparse.Namespace, submission: Submission, numbers: Sequence[int]) -> None:
    try:
        engines.hand_over(submission, numbers)
    except (RuntimeError, ValueError, OSError) as error:
        words = str(error).replace("sbatch: error: ", "").strip().splitlines()
        raise RefusalError(f"{submission.engine} takes no task: {'; '.join(words)}") from None
    for each in standings():
        if each.submission.folder == submission.folder and each.number in numbers:
            print(f"{each.task.name} ({each.task.tier}): job {each.job}, log {each.log}")
    package = command_options.package_words(options)
    print(f"to see where they stand: {options.program} submit --status{package}")


def _standings(options: argparse.Namespace) -> list[Standing]:
    """Those of the names, or all; refuses what is of a new submission."""
    command_options.named(options)
    given = [f"--{word}" for word in _NEW if vars(options)[word] is not None] + options.changes[:1]
    given += ["--again"] if options.status and options.again else []
    if given:
        words = "leave it out of --status and --again"
        raise RefusalError(f"{given[0]} is of a new submission: {words}")
    names = set(options.names) - {"all"}
    return [each for each in standings() if not names or each.task.experiment in names]


def _show(stands: Sequence[Standing]) -> int:
    if not stands:
        print("nothing has been submitted")
        return 0
    rows = [_HEAD]
    for each in stands:
        since = each.since.replace("T", " ")
        rows.append((each.task.name, each.task.tier, each.state, since, str(each.log)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    for row in rows:  # the path of a log stays whole, whatever the terminal's width
        print("  ".join(f"{cell:{size}}" for cell, size in zip(row, widths, strict=True)).rstrip())
    return 0


def _again(options: argparse.Namespace, stands: Sequence[Standing]) -> int:
    over = [each for each in stands if each.state in ("failed", "dead")]
    if not over:
        print("no task has failed or died")
        return 0
    for first in {each.submission.folder: each.submission for each in over}.values():
        _check_engine(first.engine)
        numbers = [each.number for each in over if each.submission.folder == first.folder]
        changed = submissions.changed(first, *resources.of(options, first.engine))
        _hand_over(options, changed, numbers)
    return 0
