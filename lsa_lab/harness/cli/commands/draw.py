"""``draw``: the figures again, from the files alone."""

import argparse
import sys
from pathlib import Path

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process
from lsa_lab.harness.run.folders import FIGURES, changed_folders, folder_of
from lsa_lab.harness.run.laboratory import TIERS, Experiment
from lsa_lab.harness.run.records import last_run


def obey(options: argparse.Namespace) -> int:
    """Every result of the experiments named, or of all, in its own folder: figure.pdf and .png, or
    with --panel one panel of it beside them, or with --with-caption captioned.pdf and .png."""
    if options.panel is not None and (len(options.names) != 1 or options.names == ["all"]):
        raise RefusalError("--panel is of one experiment: draw NAME --panel LETTER")
    if options.panel is not None and options.with_caption:
        raise RefusalError("--with-caption is of the whole figure: leave out --panel or it")
    places = _places(command_options.choose(options), options)
    process.configure()
    from lsa_lab.harness.run import runner

    failed = 0
    for experiment, folder, tier in places:
        try:
            runner.load(experiment, tier and (last_run(folder) or {}).get("tier", tier), folder)
            print(*runner.draw(experiment, folder, options.panel, options.with_caption), sep="\n")
        except Exception as error:  # one broken result does not stop the others
            if len(places) == 1:
                raise
            kind = "" if isinstance(error, RefusalError) else f"{type(error).__name__}: "
            print(f"error: {folder} is not drawn: {kind}{error}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


def _places(
    experiments: list[Experiment], options: argparse.Namespace
) -> list[tuple[Experiment, Path, str | None]]:
    """(experiment, folder, tier) of every result meant; the tier is None of a changed one."""
    root, places = options.out or FIGURES, []
    for experiment in experiments:
        tiers = {folder_of(experiment, tier, root): tier for tier in TIERS[1:]}
        if options.tier is not None:
            tiers = {folder_of(experiment, options.tier, options.out): options.tier}
        folders = [*tiers, *([] if options.tier else changed_folders(experiment, root))]
        folders = [folder for folder in folders if (folder / "result.nc").exists()]
        if experiment.name in options.names and not folders:
            tier = f" at the {options.tier} tier" if options.tier else ""
            raise RefusalError(f"no result of {experiment.name}{tier} under {root}: run it first")
        places += [(experiment, folder, tiers.get(folder)) for folder in folders]
    if not places:
        raise RefusalError(f"no result under {root}: run NAME first")
    return places
