"""``new``: a small experiment that works, or the test of a small theorem, to be changed."""

import argparse

from lsa_lab.harness.cli import scaffold
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run.folders import FIGURES, reported_of_others


def obey(options: argparse.Namespace) -> int:
    """One experiment at PACKAGE/THEME/NAME or PACKAGE/NAME, in the working folder; of a theorem
    tests/theorems/test_NAME.py."""
    if options.unknown or len(options.names) != 1:
        raise RefusalError("new needs one PACKAGE/THEME/NAME or PACKAGE/NAME, and nothing else")
    place = scaffold.place_of(options.names[0])
    if options.theorem:
        for path in scaffold.write_theorem(place.name):
            print(path)
        print("Change the two sides and the control; to run it: python -m pytest tests/theorems")
        return 0
    scaffold.write(place)
    print(f"{place.folder} is an experiment that works. Change its doors, one after the other:")
    for file, purpose in scaffold.purposes().items():
        print(f"    {file:12} {purpose}")
    package = "" if place.package.name == options.package else f" --package {place.package}"
    # Where another package has its figures and their ledger, this one's go elsewhere.
    out = " --out out" if reported_of_others(FIGURES, scaffold.names_in(place)) else ""
    print("Next, in this folder:")
    for words in (f"run {place.name} --tier smoke", f"run {place.name}{out}", f"report{out}"):
        print(f"    {options.program} {words}{package}")
    return 0
