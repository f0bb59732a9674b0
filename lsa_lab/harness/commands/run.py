"""``run``: compute, judge, save and draw."""

import argparse
import sys

from lsa_lab.harness import process
from lsa_lab.harness.jobs import jobs_of, words_of


def obey(options: argparse.Namespace) -> int:
    """Each experiment named at the tier, or one at a changed configuration; of all of them those
    whose model and texts have been fetched."""
    from lsa_lab.harness import series

    jobs = jobs_of(options)
    process.configure()
    from lsa_lab.hosts import LostProcessError

    try:
        with process.joined():
            return 1 if series.run(jobs) else 0
    except LostProcessError as lost:
        print(f"error: {lost}", file=sys.stderr)
        return 1
    except series.Unfinished as interrupt:
        interrupt.words = words_of(options, interrupt.jobs)
        raise
