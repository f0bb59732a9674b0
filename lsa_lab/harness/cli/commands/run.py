"""``run``: compute, judge, save and draw."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from lsa_lab.harness.cli.jobs import jobs_of, words_of
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process
from lsa_lab.store.provenance import cores

if TYPE_CHECKING:
    from lsa_lab.harness.run.runner import Job


def obey(options: argparse.Namespace) -> int:
    """Each experiment named at the tier, or one at a changed configuration; of all of them those
    whose model and texts have been fetched."""
    from lsa_lab.harness.run import series

    _check_together(options.together)
    jobs = jobs_of(options)
    try:
        return _run(jobs, options)
    except series.Unfinished as interrupt:
        interrupt.words = words_of(options, interrupt.jobs)
        raise


def _run(jobs: list["Job"], options: argparse.Namespace) -> int:
    """The exit status; several at a time where that is asked for."""
    from lsa_lab.harness.cli import together
    from lsa_lab.harness.run import series

    if len(jobs) > 1 and options.together not in (None, 1):
        try:
            return together.run(jobs, options.together, lambda job: words_of(options, [job]))
        except together.LostError as lost:
            words = shlex.join(words_of(options, lost.jobs))
            print(f"error: {lost}; to go on: {options.program} {words}", file=sys.stderr)
            return 1
    process.configure()
    from lsa_lab.store.processes import LostProcessError

    try:
        with process.join_launched():
            return series.run(jobs)
    except LostProcessError as lost:
        print(f"error: {lost}", file=sys.stderr)
        return 1


def _check_together(count: int | None) -> None:
    most = cores()
    if count is not None and not 1 <= count <= most:
        best = min(max(count, 1), most)
        raise RefusalError(f"--together {count}: choose 1 to {most}, the cores; nearest {best}")
    if count not in (None, 1) and process.is_launched():
        raise RefusalError("--together is for one process: these share every experiment")
