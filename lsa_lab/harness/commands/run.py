"""``run``: compute, judge, save and draw."""

import argparse
from typing import Any

from lsa_lab.harness import options as command_options
from lsa_lab.harness import overrides, process
from lsa_lab.harness.folders import folder_of
from lsa_lab.harness.overrides import RefusalError


def obey(options: argparse.Namespace) -> int:
    """Each experiment named at the tier, or one at a changed configuration."""
    from lsa_lab.harness import runner, series

    experiments, tier = command_options.chosen(options), options.tier or "laptop"
    if not options.names:
        listed = ", ".join([*(experiment.name for experiment in experiments), "all"])
        raise RefusalError(f"run needs a NAME: {listed}")
    if options.changes and len(experiments) > 1:
        names = " ".join(options.names)
        raise RefusalError(f"{options.changes[0]} is for one experiment: run {names} without it")
    jobs = []
    for experiment in experiments:
        if tier not in experiment.tiers:
            listed = ", ".join(experiment.tiers)
            raise RefusalError(f"{experiment.name} has no tier {tier!r}: it has {listed}")
        config, changes = experiment.tiers[tier], list(options.changes)
        if options.seeds is not None:
            changes += _seeds(experiment.name, config, options.seeds)
        if changes:
            config = overrides.apply(config, changes)
        runner.check_statements(experiment, config)
        folder = folder_of(experiment, tier, options.out, config)
        jobs.append(runner.Job(experiment, tier, config, folder))
    process.configure()
    try:
        return 1 if series.run(jobs) else 0
    except series.Unfinished as interrupt:
        interrupt.words = _resumption(options, interrupt.jobs)
        raise


def _seeds(name: str, config: Any, number: int) -> list[str]:
    """``--seeds`` as a change of the one key that holds the number of runs."""
    keys = [key for key in ("runs", "seeds") if hasattr(config, key)]
    if not keys:
        listed = ", ".join(vars(config))
        raise RefusalError(f"--seeds: {name} has no key runs or seeds: its keys are {listed}")
    if len(keys) > 1:
        words = " or ".join(f"{overrides.PREFIX}{key} {number}" for key in keys)
        raise RefusalError(f"--seeds: {name} has {' and '.join(keys)}: say {words}")
    return [f"{overrides.PREFIX}{keys[0]}", str(number)]


def _resumption(options: argparse.Namespace, jobs: list) -> list[str]:
    """The same command for the jobs that are left."""
    words = ["run", *(job.experiment.name for job in jobs), "--tier", options.tier or "laptop"]
    words += ["--seeds", str(options.seeds)] if options.seeds is not None else []
    words += ["--out", str(options.out)] if options.out else []
    words += ["--package", options.package] if options.package != "experiments" else []
    return [*words, *options.changes]
