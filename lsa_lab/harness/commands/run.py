"""``run``: compute, judge, save and draw."""

import argparse

from lsa_lab.harness import process
from lsa_lab.harness.jobs import jobs_of, words_of


def obey(options: argparse.Namespace) -> int:
    """Each experiment named at the tier, or one at a changed configuration; of all of them those
    whose model and texts have been fetched."""
    from lsa_lab.harness import series

    jobs = jobs_of(options)
    process.configure()
    try:
        return 1 if series.run(jobs) else 0
    except series.Unfinished as interrupt:
        interrupt.words = words_of(options, interrupt.jobs)
        raise
