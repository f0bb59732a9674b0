"""``python -m experiments``: list, run, draw and report.

A command line is judged before jax is imported: a wrong one costs no time and leaves no file.
"""

import argparse
import importlib
import shlex
import sys
from pathlib import Path
from typing import Any

from experiments import EXPERIMENTS, overrides, process
from experiments.checks import nearest
from experiments.overrides import RefusalError

TIERS = ("smoke", "laptop", "paper")
COMMANDS = ("run", "draw", "report")

USAGE = """\
python -m experiments                  list the experiments and their last verdicts
python -m experiments run NAME...      compute, save and draw; NAME may be all
    --tier smoke|laptop|paper          seconds, minutes, or the sizes of the papers
    --config.KEY VALUE                 another value, for one NAME
    --out DIR                          a folder to write to instead of figures/
python -m experiments draw [NAME...]   draw again from the files  [--out DIR]
python -m experiments report           figures/CLAIMS.md, index.html, README's table  [--out DIR]
"""


def main(arguments: list[str]) -> int:
    try:
        return _obey(arguments)
    except RefusalError as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        left = getattr(interrupt, "jobs", None)
        words = [*arguments] if left is None else _resumption(arguments, left)
        command = shlex.join(["python", "-m", "experiments", *words])
        print(f"\ninterrupted; to go on from the last checkpoint: {command}", file=sys.stderr)
        return 130


def _obey(arguments: list[str]) -> int:
    rest, changes = overrides.split(arguments)
    options = _parse(rest)
    if options.out is not None and options.out.exists() and not options.out.is_dir():
        raise RefusalError(f"--out {options.out} is a file: name a folder")
    if options.command is None:
        _list()
        return 0
    if changes and options.command != "run":
        raise RefusalError(f"{changes[0]} is for run: leave it out of {options.command}")
    names = _names(options.names, options.command)
    if options.command == "run":
        jobs = _jobs(names, options, changes)
        from experiments import runner

        process.configure()
        runner.run(jobs)
    elif options.command == "draw":
        _draw(names, options)
    else:
        from experiments import report, runner

        process.configure()
        report.write(options.out or runner.FIGURES, None if options.out else process.ROOT)
    return 0


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m experiments", add_help=False, allow_abbrev=False, exit_on_error=False
    )
    parser.add_argument("command", nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tier", default="laptop")
    parser.add_argument("--out", type=Path)
    if "-h" in words or "--help" in words:
        print(USAGE, end="")
        raise SystemExit(0)
    try:
        options, unknown = parser.parse_known_intermixed_args(words)
    except argparse.ArgumentError as error:
        raise RefusalError(str(error)) from None
    if unknown:
        known = ["--tier", "--out", *(f"{overrides.PREFIX}{key}" for key in _keys(options.names))]
        best = nearest(unknown[0], known)
        raise RefusalError(f"unknown option {' '.join(unknown)}: nearest {best}")
    if options.command not in (None, *COMMANDS):
        best = nearest(options.command, COMMANDS)
        raise RefusalError(f"unknown command {options.command!r}: nearest {best!r}\n{USAGE}")
    if options.tier not in TIERS:
        best, listed = nearest(options.tier, TIERS), ", ".join(TIERS)
        raise RefusalError(f"unknown tier {options.tier!r}: nearest {best!r}; there are {listed}")
    return options


def _names(names: list[str], command: str) -> list[str]:
    """The experiments meant, each once, in the order given."""
    if command == "report" and names:
        raise RefusalError(f"report tells of every experiment: leave out {' '.join(names)}")
    if command == "run" and not names:
        raise RefusalError(f"run needs a NAME: {', '.join([*EXPERIMENTS, 'all'])}")
    for name in names:
        if name not in EXPERIMENTS and name != "all":
            known = [*EXPERIMENTS, "all"]
            best, listed = nearest(name, known), ", ".join(known)
            raise RefusalError(f"unknown experiment {name!r}: nearest {best!r}; there are {listed}")
    return list(EXPERIMENTS) if "all" in names or not names else list(dict.fromkeys(names))


def _tiers(name: str) -> dict[str, Any]:
    return importlib.import_module(f"experiments.configs.{name}").TIERS


def _keys(names: list[str]) -> list[str]:
    known = [name for name in names if name in EXPERIMENTS]
    return [key for name in known for key in vars(_tiers(name)["laptop"])]


def _jobs(names: list[str], options: argparse.Namespace, changes: list[str]) -> list:
    from experiments.runner import Job, folder_of

    if changes and len(names) > 1:
        raise RefusalError(f"{changes[0]} is for one experiment: run {' '.join(names)} without it")
    jobs = []
    for name in names:
        config = _tiers(name)[options.tier]
        config = overrides.apply(config, changes) if changes else config
        jobs.append(Job(name, options.tier, config, folder_of(name, options.tier, options.out)))
    return jobs


def _list() -> None:
    from experiments.runner import describe, folder_of, last_run

    for name, question in EXPERIMENTS.items():
        print(f"{name}: {question}")
        for tier in _tiers(name):
            facts = last_run(folder_of(name, tier))
            print(f"    {tier:8} {describe(facts) if facts else 'not run yet'}")
    print(f"\n{USAGE}", end="")


def _draw(names: list[str], options: argparse.Namespace) -> None:
    from experiments import runner

    root = options.out or runner.FIGURES
    folders = [(name, runner.folder_of(name, tier, root)) for name in names for tier in TIERS[1:]]
    folders = [(name, folder) for name, folder in folders if (folder / "result.nc").exists()]
    for name in options.names:
        if name != "all" and name not in dict(folders):
            raise RefusalError(f"no result of {name} under {root}: run it first")
    process.configure()
    for name, folder in folders:
        runner.draw(name, folder)
        print(folder / "figure.pdf")


def _resumption(arguments: list[str], left: list) -> list[str]:
    """The same command for the jobs that are left."""
    rest, changes = overrides.split(arguments)
    options = _parse(rest)
    words = ["run", *(job.name for job in left), "--tier", options.tier]
    return [*words, *(["--out", str(options.out)] if options.out else []), *changes]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
