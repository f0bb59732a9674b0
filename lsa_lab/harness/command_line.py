"""The program: ``lsa-lab``, and ``python -m experiments`` in this repository.

A command line is judged before jax is imported: a wrong one costs no time and leaves no file.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lsa_lab.harness import overrides, process
from lsa_lab.harness.checks import nearest
from lsa_lab.harness.folders import FIGURES, changed_folders, folder_of, last_run
from lsa_lab.harness.laboratory import TIERS, Experiment, experiments_of
from lsa_lab.harness.outcomes import describe
from lsa_lab.harness.overrides import RefusalError

_LONGEST_NAME, _LONGEST_PATH = 255, 3500  # bytes that file systems take; room for what is inside
COMMANDS = ("list", "run", "draw", "report")

USAGE = (
    ("{program} [list]", "the experiments and their last verdicts  [--out DIR]"),
    ("{program} run NAME...", "compute, save and draw; NAME may be all"),
    ("    --tier smoke|laptop|paper", "seconds, minutes, or the sizes of the papers"),
    ("    --config.KEY VALUE...", "another value, for one NAME: a folder of its own"),
    ("    --out DIR", "write there; else to figures/, smoke to .cache/smoke/"),
    ("{program} draw [NAME...]", "draw again from the files  [--out DIR]"),
    ("{program} report", "the tables of claims and index.html  [--out DIR]"),
    ("    --package PACKAGE", "the package of experiments, here {package}"),
)


def main(
    arguments: Sequence[str] | None = None,
    *,
    package: str = "experiments",
    program: str = "lsa-lab",
) -> int:
    """The exit status: 0, 1 if a result could not be judged, 2 if refused, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        rest, changes = overrides.split(words)
        options = _parse(rest)
        options.program, options.changes = program, changes
        options.package = options.package or package
        status = _obey(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, ``head`` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RefusalError as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        jobs = getattr(interrupt, "jobs", None)
        words = words if jobs is None else _resumption(options, jobs)
        command = shlex.join([*program.split(), *words])
        print(f"\ninterrupted; to go on from the last checkpoint: {command}", file=sys.stderr)
        return 130


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("command", nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tier", default="laptop")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--package")
    parser.add_argument("-h", "--help", action="store_true")
    try:
        options, unknown = parser.parse_known_intermixed_args(words)
    except argparse.ArgumentError as error:
        raise RefusalError(str(error)) from None
    options.unknown = unknown
    return options


def _obey(options: argparse.Namespace) -> int:
    rows = [[cell.format_map(vars(options)) for cell in row] for row in USAGE]
    usage = "".join(f"{words:39}{what}\n" for words, what in rows)
    if options.help:
        print(usage, end="")
        return 0
    if options.command not in (None, *COMMANDS):
        best = nearest(options.command, COMMANDS)
        raise RefusalError(f"unknown command {options.command!r}: nearest {best!r}\n{usage}")
    if options.tier not in TIERS:
        best, listed = nearest(options.tier, TIERS), ", ".join(TIERS)
        raise RefusalError(f"unknown tier {options.tier!r}: nearest {best!r}; there are {listed}")
    _check_folder(options.out)
    experiments = experiments_of(options.package)
    _check_words(options, experiments)
    if options.command in (None, "list"):
        _list(experiments, options.out)
        print(f"\n{usage}", end="")
        return 0
    if options.changes and options.command != "run":
        raise RefusalError(f"{options.changes[0]} is for run: leave it out of {options.command}")
    chosen = _chosen(options, experiments)
    if options.command == "run":
        return _run(chosen, options)
    if options.command == "draw":
        return _draw(chosen, options)
    return _report(chosen, options)


def _check_folder(out: Path | None) -> None:
    """Refuse a folder that cannot be written to before anything is computed for it."""
    if out is None:
        return
    longest = max(out.parts, key=len, default="")
    if len(longest.encode()) > _LONGEST_NAME or len(str(out.absolute())) > _LONGEST_PATH:
        raise RefusalError(f"--out {longest[:40]}...: the name is too long: name another folder")
    if out.exists() and not out.is_dir():
        raise RefusalError(f"--out {out} is a file: name a folder")
    above = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not os.access(above, os.W_OK):
        raise RefusalError(f"--out {out}: {above} cannot be written to: name another folder")


def _check_words(options: argparse.Namespace, experiments: dict[str, Experiment]) -> None:
    """Refuse an unknown option or experiment, with the nearest that there is."""
    if options.unknown:
        keys = [
            key for name in options.names if name in experiments for key in _keys(experiments[name])
        ]
        words = ["--tier", "--out", "--package", *(f"{overrides.PREFIX}{key}" for key in keys)]
        best = nearest(options.unknown[0], words)
        raise RefusalError(f"unknown option {' '.join(options.unknown)}: nearest {best}")
    names = [*experiments, "all"]
    if options.command == "run" and not options.names:
        raise RefusalError(f"run needs a NAME: {', '.join(names)}")
    if options.command in (None, "list", "report") and options.names:
        listed = " ".join(options.names)
        raise RefusalError(f"{options.command} tells of every experiment: leave out {listed}")
    for name in options.names:
        if name not in names:
            best, listed = nearest(name, names), ", ".join(names)
            raise RefusalError(
                f"unknown experiment {name!r} in the package {options.package}: nearest {best!r}; "
                f"there are {listed}"
            )


def _keys(experiment: Experiment) -> list[str]:
    return list(vars(experiment.tiers["laptop"]))


def _chosen(options: argparse.Namespace, experiments: dict[str, Experiment]) -> list[Experiment]:
    """The experiments meant, each once, in the order given."""
    names = experiments if "all" in options.names or not options.names else options.names
    return [experiments[name] for name in dict.fromkeys(names)]


def _run(chosen: list[Experiment], options: argparse.Namespace) -> int:
    from lsa_lab.harness import runner

    if options.changes and len(chosen) > 1:
        names = " ".join(options.names)
        raise RefusalError(f"{options.changes[0]} is for one experiment: run {names} without it")
    jobs = []
    for experiment in chosen:
        if options.tier not in experiment.tiers:
            listed = ", ".join(experiment.tiers)
            raise RefusalError(f"{experiment.name} has no tier {options.tier!r}: it has {listed}")
        config = experiment.tiers[options.tier]
        if options.changes:
            config = overrides.apply(config, options.changes)
        runner.check_statements(experiment, config)
        folder = folder_of(experiment, options.tier, options.out, config)
        jobs.append(runner.Job(experiment, options.tier, config, folder))
    process.configure()
    return 1 if runner.run(jobs) else 0


def _list(experiments: dict[str, Experiment], out: Path | None) -> None:
    for name, experiment in experiments.items():
        print(f"{name}: {experiment.question}")
        for tier in experiment.tiers:
            facts = last_run(folder_of(experiment, tier, out))
            if facts is None or facts["tier"] != tier:  # in ``out`` two tiers share a folder
                print(f"    {tier:8} not run yet")
            else:
                print(f"    {tier:8} {describe(facts)}")
        for folder in changed_folders(experiment, out):
            facts = last_run(folder)
            if facts:
                print(f"    {facts['tier']} changed, {folder.name}: {describe(facts)}")


def _draw(chosen: list[Experiment], options: argparse.Namespace) -> int:
    from lsa_lab.harness import runner

    root = options.out or FIGURES
    places = []
    for experiment in chosen:
        tiers = {folder_of(experiment, tier, root): tier for tier in TIERS[1:]}
        folders = [*tiers, *changed_folders(experiment, root)]
        folders = [folder for folder in folders if (folder / "result.nc").exists()]
        if experiment.name in options.names and not folders:
            raise RefusalError(f"no result of {experiment.name} under {root}: run it first")
        places += [(experiment, folder, tiers.get(folder)) for folder in folders]
    process.configure()
    for experiment, folder, tier in places:
        if tier is not None:
            facts = last_run(folder) or {}
            runner.load(experiment, facts.get("tier", tier), folder)  # or refused
        runner.draw(experiment, folder)
        print(folder / "figure.pdf")
    return 0


def _report(chosen: list[Experiment], options: argparse.Namespace) -> int:
    from lsa_lab.harness import report
    from lsa_lab.harness.headlines import headlines_of

    root = options.out or FIGURES
    folders = [folder_of(each, tier, root) for each in chosen for tier in TIERS[1:]]
    if not any((folder / "result.nc").exists() for folder in folders):
        raise RefusalError(f"no result of the laptop or the paper tier under {root}: run all first")
    process.configure()
    readme = None if options.out else Path("README.md")
    papers = [] if options.out else sorted(Path("docs/papers").glob("*.md"))
    broken = report.write(chosen, root, readme, headlines_of(options.package), papers)
    for name, text in broken.items():
        print(f"error: {name} is left out of the report: {text}", file=sys.stderr)
    return 1 if broken else 0


def _resumption(options: argparse.Namespace, jobs: list) -> list[str]:
    """The same command for the jobs that are left."""
    words = ["run", *(job.experiment.name for job in jobs), "--tier", options.tier]
    words += ["--out", str(options.out)] if options.out else []
    words += ["--package", options.package] if options.program == "lsa-lab" else []
    return [*words, *options.changes]
