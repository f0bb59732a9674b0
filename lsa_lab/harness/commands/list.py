"""``list``: what there is, and how it ended."""

import argparse
from pathlib import Path

from lsa_lab.harness import options as command_options
from lsa_lab.harness.folders import changed_folders, folder_of, last_run
from lsa_lab.harness.help import help_text
from lsa_lab.harness.laboratory import Experiment
from lsa_lab.harness.outcomes import describe
from lsa_lab.harness.overrides import RefusalError


def obey(options: argparse.Namespace) -> int:
    """One experiment after the other, with the last verdicts of each tier."""
    if options.names:
        listed = " ".join(options.names)
        raise RefusalError(f"list tells of every experiment: leave out {listed}")
    for experiment in command_options.chosen(options):
        _show(experiment, options.out)
    print(f"\n{help_text(options)}", end="")
    return 0


def _show(experiment: Experiment, out: Path | None) -> None:
    print(f"{experiment.name}: {experiment.question}")
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
