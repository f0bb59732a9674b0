"""How long runs will take and how much memory, said before they begin: from measurement alone."""

import contextlib
from collections.abc import Sequence

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import measured
from lsa_lab.harness.run.clock import Past, clock_word
from lsa_lab.harness.run.folders import folder_of
from lsa_lab.harness.run.laboratory import TIERS
from lsa_lab.harness.run.records import last_run
from lsa_lab.harness.run.runner import Job

_NOTHING = "never measured; what is left is said once its parts have shown their speed"


def past_of(job: Job) -> Past:
    """How the same configuration went last time: here, else where its result was computed."""
    return _measured(job)[0]


def beforehand(jobs: Sequence[Job]) -> list[str]:
    """A line for each job of a tier that takes hours, and one for all of these."""
    jobs = [job for job in jobs if job.tier in TIERS[2:]]
    lines = [f"{job.experiment.name} ({job.tier}): {_words(job)}" for job in jobs]
    seconds = [past_of(job).seconds for job in jobs]
    if len(jobs) > 1 and any(seconds):
        total, lacking = clock_word(sum(filter(None, seconds))), seconds.count(None)
        rest = f", and {lacking} that were never measured" if lacking else ""
        lines.append(f"all {len(jobs)}: {total} one after the other{rest}")
    return lines


def _words(job: Job) -> str:
    past, memory, where = _measured(job)
    spent = measured.Spent(job.checkpoints)
    parts = [_NOTHING]
    if past.seconds:
        size = f" and {memory / 1e9:.1f} GB" if memory else ""
        parts = [f"{clock_word(past.seconds)}{size}, {where}"]
    if spent.resumed:
        behind = "" if spent.seconds is None else f" after {clock_word(spent.seconds)}"
        parts.append(f"goes on from its checkpoint{behind}")
    return "; ".join(parts)


def _measured(job: Job) -> tuple[Past, int | None, str]:
    """Seconds and memory of the last run, and where that was."""
    kept = measured.kept(job.identity)
    if kept is not None:
        return *kept, "as last time on this machine"
    for folder in (job.folder, folder_of(job.experiment, job.tier)):
        with contextlib.suppress(RefusalError):  # a damaged record is replaced by this run's
            facts = last_run(folder)
            if facts is not None:
                return *measured.recorded(facts, job.config), f"as {folder} says"
    return Past(), None, ""
