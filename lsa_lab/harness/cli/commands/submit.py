"""``submit``: the same as ``run``, by jobs of SLURM or processes of this machine.

A job is a folder of the cache, ``submitted/IDENTITY``: ``run.sh``, which either engine is given,
``job.json``, and of each share of its runs what the script has said of it, SHARE.state.

Task k of K computes, of every training and of every grid, the rows that ``processes.share`` names:
whole groups of ``width`` runs, or cells, from groups * k // K to groups * (k + 1) // K; what is no
run or cell every task computes. K need not run at once: a task that has waited five minutes for
one that has not begun leaves what it has computed and goes to the end of the queue.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli.jobs import jobs_of, words_of
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process
from lsa_lab.store import safe_files
from lsa_lab.store.cache import cache

ENGINES = ("slurm", "local")
_HEAD = ("TASK", "TIER", "STATE", "SINCE", "LOG")
_NEW = ("tier", "seeds", "model", "out", "engine", "shares")  # options of a new submission
_MAIN = "from lsa_lab.harness.cli.command_line import main; raise SystemExit(main())"
# At the end of its time SLURM interrupts a job, which saves and goes to the end of the queue.
_SCRIPT = """#!/bin/sh
#SBATCH --job-name={name}
#SBATCH --output={folder}/%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=INT@120
{flags}
share=${{SLURM_ARRAY_TASK_ID:-$1}}
cd {here}
export LSA_LAB_CACHE={cache}
[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
{shared}
echo running > {folder}/$share.state
${{SLURM_JOB_ID:+srun}} {command}
status=$?
case $status in
0) echo done > {folder}/$share.state
   [ "$(cat {folder}/*.state | grep -cx done)" != {shares} ] || rm -rf {folder}/exchange ;;
75) if grep -qx failed {folder}/*.state; then echo failed > {folder}/$share.state
    elif [ -n "$SLURM_JOB_ID" ]; then scontrol requeue "$SLURM_JOB_ID"; fi ;;
130) [ -z "$SLURM_JOB_ID" ] || scontrol requeue "$SLURM_JOB_ID" ;;
*) [ $status -ge 128 ] || echo failed > {folder}/$share.state ;;
esac
exit $status
"""


class Task(NamedTuple):
    """A share of a job: the facts of job.json, which share it is, and how it stands."""

    facts: dict[str, Any]
    share: int
    state: str  # waiting, running, done, failed, dead (it ended without a word) or unknown
    since: str

    @property
    def name(self) -> str:
        name, shares = self.facts["name"], self.facts["shares"]
        return f"{name} {self.share + 1}/{shares}" if shares > 1 else name

    @property
    def log(self) -> str:
        return os.path.relpath(Path(self.facts["folder"], f"{self.share}.log"))


def obey(options: argparse.Namespace) -> int:
    """What run does, to the same bits: one job an experiment, a script of SLURM's or a process of
    this machine. --status shows every task: waiting, running, done, failed (its log says why) or
    dead (its process is gone). --again submits those that failed or died, alone, and each goes on
    from its checkpoint; at SLURM's time limit a job does so by itself."""
    if options.status or options.again:
        return _later(options)
    for facts in _new(options):
        shutil.rmtree(facts["folder"], ignore_errors=True)
        _hand_over(facts, range(facts["shares"]))
    package = command_options.package_words(options)
    print(f"to see where they stand: {options.program} submit --status{package}")
    return 0


def _new(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The jobs of the names; refuses what could not be run, or is on its way already."""
    engine, flags = options.engine or ENGINES[0], _flags(options)
    _check_engine(engine, flags)
    shares = 1 if options.shares is None else options.shares
    if shares < 1:
        raise RefusalError(f"--shares {shares}: choose a whole number of at least 1; nearest 1")
    jobs, new = jobs_of(options), list[dict[str, Any]]()
    for job in jobs:
        folder = cache().absolute() / "submitted" / job.identity
        facts: dict[str, Any] = {"folder": str(folder), "name": job.experiment.name}
        facts |= {"tier": job.tier, "words": words_of(options, [job]), "engine": engine}
        new.append(facts | {"flags": flags, "shares": shares, "jobs": {}})
    if engine == "local" and len(jobs) > 1 and len(new) * shares > process.cores():
        raise RefusalError(
            f"{len(new) * shares} tasks would start at once on {process.cores()} cores: submit "
            f"fewer, or {options.program} run, which computes one experiment after the other"
        )
    folders = [facts["folder"] for facts in new]
    for task in _tasks():
        if task.facts["folder"] in folders and task.state in ("waiting", "running"):
            job = task.facts["jobs"][str(task.share)]
            raise RefusalError(
                f"{task.name} ({task.facts['tier']}) is {task.state} as job {job} of "
                f"{task.facts['engine']}: wait for it, or end it"
            )
    return new


def _check_engine(engine: str, flags: dict[str, str]) -> None:
    """Refuse an engine that is none, or is not on this machine."""
    command_options.check_known("engine", engine, ENGINES)
    if engine == "local" and flags:
        raise RefusalError("--slurm is SLURM's: leave it out of --engine local")
    if engine == "slurm" and not (shutil.which("sbatch") and shutil.which("srun")):
        raise RefusalError(
            "there is no SLURM on this machine (no sbatch): go to one that has it, or choose "
            "--engine local, which is this machine"
        )


def _flags(options: argparse.Namespace) -> dict[str, str]:
    """KEY=VALUE, and a KEY alone for a flag that takes no value, as sbatch has them."""
    flags = {}
    for word in options.slurm or []:
        key = word.partition("=")[0]
        if not re.fullmatch(r"[a-z][a-z_-]*(=[^\s]+)?", word):
            refusal = "write KEY=VALUE, a flag of sbatch without its dashes"
            raise RefusalError(f"--slurm {word}: {refusal}")
        flags[key.replace("_", "-")] = word[len(key) :]
    return flags


def _hand_over(facts: dict[str, Any], shares: Sequence[int]) -> None:
    """Give shares of a job to its engine; one that it had goes on from its checkpoint."""
    folder, count = Path(facts["folder"]), facts["shares"]
    exchange = f"export LSA_LAB_EXCHANGE={folder}/exchange JAX_NUM_PROCESSES={count}"
    text = _SCRIPT.format(
        name=facts["name"],
        folder=shlex.quote(str(folder)),
        flags="\n".join(f"#SBATCH --{key}{value}" for key, value in facts["flags"].items()),
        here=shlex.quote(os.getcwd()),
        cache=shlex.quote(str(cache().absolute())),
        shared=f"{exchange} JAX_PROCESS_ID=$share" if count > 1 else "",
        command=shlex.join([sys.executable, "-c", _MAIN, *facts["words"]]),
        shares=count,
    )
    safe_files.write(folder / "run.sh", text.encode())
    for share in shares:
        safe_files.remove(folder / f"{share}.state")
    submit = _by_slurm if facts["engine"] == "slurm" else _by_this_machine
    facts["jobs"] |= submit(folder, shares)
    safe_files.write(folder / "job.json", json.dumps(facts, indent=2).encode())
    for share in shares:
        task = Task(facts, share, "", "")
        print(f"{task.name} ({facts['tier']}): job {facts['jobs'][str(share)]}, log {task.log}")


def _by_this_machine(folder: Path, shares: Sequence[int]) -> dict[str, str]:
    """{share: process}; they outlive this process."""
    jobs = {}
    for share in shares:
        with open(folder / f"{share}.log", "a", encoding="utf-8") as log:
            words = ["sh", str(folder / "run.sh"), str(share)]
            ran = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            jobs[str(share)] = str(ran.pid)
    return jobs


def _by_slurm(folder: Path, shares: Sequence[int]) -> dict[str, str]:
    """{share: job}, elements of one array."""
    words = ["sbatch", "--parsable", f"--array={','.join(map(str, shares))}"]
    done = subprocess.run([*words, str(folder / "run.sh")], capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=not (folder / "job.json").exists())
        said = done.stderr.replace("sbatch: error: ", "").strip().splitlines()
        raise RefusalError(f"slurm takes no task: {'; '.join(said)}")
    job = done.stdout.strip().partition(";")[0]
    return {str(share): f"{job}_{share}" for share in shares}


def _tasks() -> list[Task]:
    """Every share of every job, by name."""
    files = sorted((cache().absolute() / "submitted").glob("*/job.json"))
    jobs = [json.loads(file.read_text("utf-8")) for file in files]
    queue = _queue() if any(facts["engine"] == "slurm" for facts in jobs) else None
    return [_task(facts, share, queue) for facts in jobs for share in range(facts["shares"])]


def _task(facts: dict[str, Any], share: int, queue: dict[str, str] | None) -> Task:
    folder, job = Path(facts["folder"]), facts["jobs"][str(share)]
    states = [folder / f"{share}.state", folder / "0.state"]
    said = [path.read_text().strip() if path.exists() else "" for path in states]
    if "done" in said or said[0] == "failed":  # the first has the whole result
        state = "done" if "done" in said else "failed"
    elif facts["engine"] == "local":
        state = (said[0] or "waiting") if safe_files.is_alive(int(job)) else "dead"
    elif queue is None:
        state = "unknown"
    else:
        running = queue.get(job) in ("RUNNING", "COMPLETING")
        state = "running" if running else "waiting" if job in queue else "dead"
    files = [folder / f"{share}.{'log' if state == 'dead' else 'state'}", folder / "job.json"]
    time = next(file for file in files if file.exists()).stat().st_mtime
    return Task(facts, share, state, datetime.fromtimestamp(time).isoformat(" ", "minutes"))


def _queue() -> dict[str, str] | None:
    """{job: its state} of what SLURM has of this user and has not ended; None if it is not there.
    squeue, and not sacct: many a small cluster keeps no accounts."""
    words = ["squeue", "--me", "--array", "--noheader", "--format=%i %T"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(line.split() for line in done.stdout.splitlines())


def _later(options: argparse.Namespace) -> int:
    """--status, and --again; refuses what is of a new submission."""
    command_options.find_named(options)
    given = [f"--{word}" for word in _NEW if vars(options)[word] is not None] + options.changes[:1]
    given += ["--again"] if options.status and options.again else []
    if given:
        words = "leave it out of --status and --again"
        raise RefusalError(f"{given[0]} is of a new submission: {words}")
    names = set(options.names) - {"all"}
    tasks = [task for task in _tasks() if not names or task.facts["name"] in names]
    if options.status:
        rows = [_HEAD, *((t.name, t.facts["tier"], t.state, t.since, t.log) for t in tasks)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        # The path of a log stays whole, whatever the terminal's width.
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        print("\n".join(lines) if tasks else "nothing has been submitted")
        return 0
    over = [task for task in tasks if task.state in ("failed", "dead")]
    by_folder = {task.facts["folder"]: task.facts for task in over}
    for facts in by_folder.values():
        facts["flags"] |= _flags(options)
        _check_engine(facts["engine"], facts["flags"])
    for folder, facts in by_folder.items():
        _hand_over(facts, [task.share for task in over if task.facts["folder"] == folder])
    if not over:
        print("no task has failed or died")
    return 0
