"""``draw``: the figures again, from the files alone."""

import argparse

from lsa_lab.harness import options as command_options
from lsa_lab.harness import process
from lsa_lab.harness.folders import FIGURES, changed_folders, folder_of, last_run
from lsa_lab.harness.laboratory import TIERS
from lsa_lab.harness.overrides import RefusalError


def obey(options: argparse.Namespace) -> int:
    """Every result of the experiments named, or of all, in its own folder."""
    from lsa_lab.harness import runner

    root = options.out or FIGURES
    places = []
    for experiment in command_options.chosen(options):
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
