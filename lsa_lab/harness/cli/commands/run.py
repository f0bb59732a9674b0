"""``run``: compute, judge, save and draw."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from lsa_lab.harness.cli.jobs import jobs_of, sweep_of, words_of
from lsa_lab.harness.cli.options import package_words
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process
from lsa_lab.harness.run.folders import FIGURES, folder_of
from lsa_lab.harness.run.laboratory import TIERS
from lsa_lab.store.provenance import cores

if TYPE_CHECKING:
    from lsa_lab.harness.run.runner import Job


def obey(options: argparse.Namespace) -> int:
    """Each experiment named at the tier, or one at a changed configuration; of all of them those
    whose model and texts have been fetched. A sweep is one experiment at several values: its cells
    are kept, and one Dataset and a plot have what is judged in all of them. Such as: run all --tier
    smoke --together 2."""
    from lsa_lab.harness.run import series

    _check_together(options.together)
    try:
        return _reproduce(options) if options.beside else _compute(options)
    except series.Unfinished as interrupt:
        interrupt.words = words_of(options, interrupt.jobs)
        raise


def _compute(options: argparse.Namespace) -> int:
    jobs = jobs_of(options)
    keys, cells = sweep_of(options, jobs[0]) if options.sweep else ([], {})
    print(_first_line(jobs, len(cells)), flush=True)
    status = _sweep(keys, cells) if cells else _run(jobs, options)
    if status == 0 and jobs[0].tier != TIERS[0] and not (cells or options.changes or options.seeds):
        own = jobs[0].experiment.name if len(jobs) == 1 else ""
        page = (options.out or FIGURES) / own / "index.html"
        out = f" --out {shlex.quote(str(options.out))}" if options.out else ""
        words = f"{options.program} report{out}{package_words(options)}"
        print(f"to see it on its page: {words}, then {page}")
    return status


def _reproduce(options: argparse.Namespace) -> int:
    """Run beside the committed results, which stay as they are, and compare; what this very commit
    has reproduced before is only compared."""
    if options.out or options.changes or options.sweep or options.seeds:
        raise RefusalError("--beside computes what is committed: leave out --out and other keys")
    from lsa_lab.harness.cli.commands import compare

    jobs = jobs_of(options)
    print(_first_line(jobs, 0), flush=True)
    left = [job for job in jobs if not compare.is_of_this_commit(job.folder)]
    for job in jobs:
        if job not in left:
            print(f"{job.experiment.name}: not computed again, nothing has changed since")
    status = _run(left, options) if left else 0
    for job in jobs:
        if (job.folder / "result.nc").exists():
            line = compare.reproduction(job.folder, folder_of(job.experiment, job.tier))
            print(f"{job.experiment.name}: {line}")
    return status


def _first_line(jobs: list["Job"], cells: int) -> str:
    """What begins, said before anything heavy is imported."""
    tier, experiment = jobs[0].tier, jobs[0].experiment
    if len(jobs) > 1:
        return f"{len(jobs)} experiments at the {tier} tier"
    words = f"a sweep of {cells} cells" if cells else f"into {jobs[0].folder}"
    return f"{experiment.name} ({tier}), {words}: {' '.join(experiment.question.split())}"


def _sweep(keys: list[str], cells: "dict[tuple, Job]") -> int:
    process.configure()
    from lsa_lab.harness.run import series, sweep

    process.hear_interrupts()
    try:
        return sweep.run(keys, cells)
    except (KeyboardInterrupt, SystemExit) as end:
        raise series.Unfinished([next(iter(cells.values()))], end) from None


def _run(jobs: list["Job"], options: argparse.Namespace) -> int:
    """The exit status; several at a time where that is asked for."""
    from lsa_lab.harness.cli import together
    from lsa_lab.harness.run import series

    if len(jobs) > 1 and options.together not in (None, 1):
        process.hear_interrupts()
        try:
            return together.run(jobs, options.together, lambda job: words_of(options, [job]))
        except together.LostError as lost:
            words = shlex.join(words_of(options, lost.jobs))
            print(f"error: {lost}; to go on: {options.program} {words}", file=sys.stderr)
            return 1
    process.configure()
    process.hear_interrupts()
    return series.run(jobs)


def _check_together(count: int | None) -> None:
    most = cores()
    if count is not None and not 1 <= count <= most:
        best = min(max(count, 1), most)
        raise RefusalError(f"--together {count}: choose 1 to {most}, the cores; nearest {best}")
