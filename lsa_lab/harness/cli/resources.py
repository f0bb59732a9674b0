"""What a task may use, in the words of the command line and in submitit's."""

import argparse
import re
from typing import Any

from lsa_lab.harness.refusal import RefusalError

_DAY = 24 * 60  # minutes
_OF_SLURM = ("partition", "time", "mem", "cpus", "slurm")


def usual(engine: str) -> dict[str, Any]:
    """What submitit is told where the command line says nothing."""
    # submitit's own limit is five minutes; a process of this machine needs none.
    limit = _DAY if engine == "slurm" else 3650 * _DAY
    return {"name": "lsa-lab", "timeout_min": limit, "stderr_to_stdout": True}


def of(options: argparse.Namespace, engine: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what submitit is told, other flags of sbatch) by the command line."""
    given = [word for word in _OF_SLURM if getattr(options, word) is not None]
    if engine == "local" and given:
        raise RefusalError(f"--{given[0]} is SLURM's: leave it out of --engine local")
    for word, least in (("cpus", 1), ("gpus", 0)):
        number = getattr(options, word)
        if number is not None and number < least:
            raise RefusalError(f"--{word} {number}: choose at least {least}; nearest {least}")
    parameters = {
        "slurm_partition": options.partition,
        "timeout_min": None if options.time is None else minutes(options.time),
        "slurm_mem": options.mem,
        "cpus_per_task": options.cpus,
        # What SLURM allots to a job is no longer, from 22.05 on, what it gives a process in it.
        "slurm_srun_args": options.cpus and [f"--cpus-per-task={options.cpus}"],
        "gpus_per_node": options.gpus,
    }
    flags = dict(_flag(word) for word in options.slurm or [])
    return {name: value for name, value in parameters.items() if value is not None}, flags


def minutes(clock: str) -> int:
    """SLURM's "minutes", "hours:minutes:seconds", "days-hours:minutes" and so on, in minutes."""
    parts = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", clock)
    days, *rest = parts.groups() if parts else (None,)
    numbers = [int(part) for part in rest if part is not None]
    hours_first = days is not None or len(numbers) == 3
    units = (60, 1, 1 / 60) if hours_first else (1, 1 / 60)
    total = int(days or 0) * _DAY + sum(n * unit for n, unit in zip(numbers, units, strict=False))
    if not total:
        raise RefusalError(f"--time {clock}: write minutes, hours:minutes:seconds or days-hours")
    return max(1, round(total))


def _flag(word: str) -> tuple[str, Any]:
    """KEY=VALUE, and a KEY alone for a flag that takes no value."""
    key, equals, value = word.partition("=")
    if not re.fullmatch(r"[a-z][a-z_-]*", key) or (equals and not value):
        raise RefusalError(f"--slurm {word}: write KEY=VALUE, a flag of sbatch without its dashes")
    return key, (int(value) if value.isdigit() else value) if equals else True
