"""``report``: the tables of claims and the page of all figures."""

import argparse
import sys
from pathlib import Path

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process
from lsa_lab.harness.run.folders import FIGURES, folder_of, reported_of_others
from lsa_lab.harness.run.laboratory import TIERS


def obey(options: argparse.Namespace) -> int:
    """Pages of every experiment that has a result, in the folder of the results."""
    from lsa_lab.harness.report import report
    from lsa_lab.harness.report.headlines import first_of

    if options.names:
        listed = " ".join(options.names)
        raise RefusalError(f"report tells of every experiment: leave out {listed}")
    experiments, root = command_options.choose(options), options.out or FIGURES
    folders = [folder_of(each, tier, root) for each in experiments for tier in TIERS[1:]]
    if not any((folder / "result.nc").exists() for folder in folders):
        raise RefusalError(f"no result of the laptop tier or above under {root}: run all first")
    others = reported_of_others(root, [each.name for each in experiments])
    if others:
        raise RefusalError(
            f"{root / 'CLAIMS.md'} tells of {others[0]}, which {options.package} has not "
            f"({len(others)} in all): delete its results, or run and report elsewhere, --out out"
        )
    first_of(options.package)  # refuses a place that is none before anything is read
    process.configure()
    readme = None if options.out else Path("README.md")
    papers = [] if options.out else sorted(Path("docs/papers").glob("*.md"))
    theory = sorted(Path("docs", "theory").glob("*.md"))
    notes = sorted(Path("docs", "findings").glob("[!R]*.md"))
    broken = report.write(experiments, root, options.package, readme, papers, theory, notes)
    for name, text in broken.items():
        print(f"error: {name} is left out of the report: {text}", file=sys.stderr)
    return 1 if broken else 0
