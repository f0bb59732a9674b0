"""What a command line asks for: experiments, each at a configuration that can be run."""

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli import overrides
from lsa_lab.harness.cli.overrides import PREFIX
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import needs
from lsa_lab.harness.run.folders import folder_of, named_for, reproductions
from lsa_lab.harness.run.laboratory import Experiment
from lsa_lab.store import safe_files

if TYPE_CHECKING:
    from lsa_lab.harness.run.runner import Job


def jobs_of(options: argparse.Namespace) -> list["Job"]:
    """A job for each experiment named, or a refusal before anything is computed; of all of them
    those whose model and texts have been fetched."""
    from lsa_lab.harness.run import runner

    experiments, tier = command_options.choose(options), tier_of(options)
    if not options.names:
        listed = ", ".join(experiment.name for experiment in experiments[:3])
        raise RefusalError(
            f"{options.command} needs a NAME, {listed}, ... or all: {options.program} list has them"
        )
    words_of_one = [*options.changes[:1], *(["--sweep"] if getattr(options, "sweep", None) else [])]
    if words_of_one and len(experiments) > 1:
        words = f"{options.command} {' '.join(options.names)}"
        raise RefusalError(f"{words_of_one[0]} is for one experiment: {words} without it")
    if "all" in options.names:
        experiments = _ready(experiments, tier, options)
    out = reproductions() if getattr(options, "beside", False) else options.out
    jobs = []
    for experiment in experiments:
        if tier not in experiment.tiers:
            listed = ", ".join(experiment.tiers)
            raise RefusalError(f"{experiment.name} has no tier {tier!r}: it has {listed}")
        config = _config(experiment, tier, options)
        folder = folder_of(experiment, tier, out, config)
        jobs.append(runner.Job(experiment, tier, config, folder))
        _check_runnable(jobs[-1], options)
    for job in jobs if not options.sweep else ():  # whose cells are still to be looked at
        _check_writable(job)
    return jobs


def sweep_of(options: argparse.Namespace, job: "Job") -> "tuple[list[str], dict[tuple, Job]]":
    """The keys of --sweep, and {a value for each: its job}, in folders inside that of the sweep."""
    axes: dict[str, list[Any]] = {}
    for word in options.sweep:
        key, equals, values = word.removeprefix(PREFIX).removeprefix("config.").partition("=")
        if not (key and equals and all(values.split(","))):
            raise RefusalError(f"--sweep {word}: write KEY=VALUE,VALUE, as in --sweep n=5,10,20")
        configs = [overrides.apply(job.config, [f"{PREFIX}{key}={v}"]) for v in values.split(",")]
        key = key.replace("-", "_")
        if key in axes:
            raise RefusalError(f"--sweep {word}: say all values of {key} at once: {key}=1,2,3")
        axes[key] = list(dict.fromkeys(attrgetter(key)(config) for config in configs))
    cells = {}
    for place in itertools.product(*axes.values()):
        values = dict(zip(axes, place, strict=True))
        words = [f"{PREFIX}{key}={value}" for key, value in values.items()]
        folder = job.folder / f"sweep,{named_for(axes)}" / named_for(values)
        cells[place] = replace(job, config=overrides.apply(job.config, words), folder=folder)
        _check_runnable(cells[place], options)
    _check_writable(job)
    return list(axes), cells


def _check_runnable(job: "Job", options: argparse.Namespace) -> None:
    from lsa_lab.harness.run import runner

    runner.check_statements(job.experiment, job.config)
    needs.check(job.experiment, job.tier, job.config, options.program)


def tier_of(options: argparse.Namespace) -> str:
    return options.tier or "laptop"


def words_of(options: argparse.Namespace, jobs: Sequence["Job"]) -> list[str]:
    """The command line that runs these jobs alone."""
    words = ["run", *(job.experiment.name for job in jobs), "--tier", tier_of(options)]
    words += ["--seeds", str(options.seeds)] if options.seeds is not None else []
    words += ["--model", options.model] if options.model is not None else []
    words += ["--out", str(options.out)] if options.out else []
    words += ["--beside"] if options.beside else []
    words += [] if options.together is None else ["--together", str(options.together)]
    words += [word for sweep in options.sweep or [] for word in ("--sweep", sweep)]
    words += ["--package", options.package] if options.package != "experiments" else []
    return [*words, *options.changes]


def _check_writable(job: "Job") -> None:
    """Refuse a folder that could not take the result, before anything is computed for it; a link
    in the place of one that we name would lead out of the folder that was asked for."""
    for folder in (job.folder, *job.folder.parents):
        if folder.is_symlink():
            raise RefusalError(f"{folder} is a link: remove it, or name what it leads to by --out")
        if folder.name == job.experiment.name:
            break
    try:
        safe_files.check_writable(job.folder.parent)
    except OSError as error:
        raise RefusalError(
            f"{job.folder.parent} cannot be written ({error.strerror}): choose another with --out"
        ) from None


def _ready(
    experiments: list[Experiment], tier: str, options: argparse.Namespace
) -> list[Experiment]:
    """Those of all experiments that have the tier and can be run; a sentence tells of the rest."""
    having = [experiment for experiment in experiments if tier in experiment.tiers] or experiments
    lacking = {each: needs.not_fetched(needs.needs_of(each, tier)) for each in having}
    ready = [experiment for experiment in having if not lacking[experiment]]
    waiting = [experiment for experiment in having if lacking[experiment]]
    if not ready:
        return waiting  # each is refused in its own words
    if waiting:
        sources = list(dict.fromkeys(name for each in waiting for name in lacking[each]))
        names = ", ".join(experiment.name for experiment in waiting)
        print(
            f"left out until {needs.fetch_command(sources, options.program)} has been run: {names}"
        )
    return ready


def _config(experiment: Experiment, tier: str, options: argparse.Namespace) -> Any:
    """The tier's configuration, or what the command line makes of it."""
    config, changes = experiment.tiers[tier], list(options.changes)
    if options.seeds is not None:
        changes += _seeds(experiment.name, config, options.seeds)
    if options.model is not None:
        changes = [*_model(experiment.name, config, options.model), *changes]
    return overrides.apply(config, changes) if changes else config


def _seeds(name: str, config: Any, number: int) -> list[str]:
    """``--seeds`` as a change of the one key that holds the number of runs."""
    keys = [key for key in ("runs", "seeds") if hasattr(config, key)]
    if not keys:
        listed = ", ".join(vars(config))
        raise RefusalError(f"--seeds: {name} has no key runs or seeds: its keys are {listed}")
    if len(keys) > 1:
        words = " or ".join(f"{PREFIX}{key} {number}" for key in keys)
        raise RefusalError(f"--seeds: {name} has {' and '.join(keys)}: say {words}")
    return [f"{PREFIX}{keys[0]}", str(number)]


def _model(name: str, config: Any, path: str) -> list[str]:
    """``--model`` as a change of the keys that say which decoder it is, as far as there are any."""
    if not hasattr(config, "model"):
        raise RefusalError(f"--model: {name} reads no language model, so it has no key model")
    keys = needs.of_ones_own(config, path)
    return [word for key, values in keys.items() for word in (f"{PREFIX}{key}", *map(str, values))]
