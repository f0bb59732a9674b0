"""Experiments one after the other."""

import contextlib
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.console import Console
from rich.progress import Progress

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process, progress
from lsa_lab.harness.run.clock import clock_word
from lsa_lab.harness.run.folders import folder_of, reproductions
from lsa_lab.harness.run.laboratory import TIERS
from lsa_lab.harness.run.outcomes import Outcome, comparison, describe
from lsa_lab.harness.run.records import last_run
from lsa_lab.harness.run.runner import Job, NotJudgedError, run_one
from lsa_lab.store import results
from lsa_lab.store.provenance import cores
from lsa_lab.store.safe_files import OwnedError
from lsa_lab.training.status import DivergedError

DIVERGED = 3  # the exit status


class Unfinished(KeyboardInterrupt):
    """Ctrl-C, or a request to end that a training has obeyed, with the jobs that are not done, and
    the words of a command line that does them."""

    def __init__(self, jobs: Sequence[Job], end: BaseException | None = None):
        if isinstance(end, SystemExit) and end.code not in process.INTERRUPTED:
            raise end
        super().__init__()
        self.jobs = jobs
        self.code = getattr(end, "code", process.INTERRUPTED[0])
        self.words: list[str] = []


def run(jobs: list[Job]) -> int:
    """Carry the jobs out, one after the other; the exit status: 1 if one has no result, or none
    that is judged, 3 if that is because a training diverged.
    """
    console, statuses = Console(), [0]
    outcomes: dict[str, Outcome] = {}
    bars = progress.bars(console)
    say(console, *forecasts(jobs))
    with progress.screen(bars):
        every = bars.add_task(
            "all experiments", total=len(jobs), visible=len(jobs) > 1, of_parts=True
        )
        for i, job in enumerate(jobs):
            try:
                outcome, status, text = attempt(job, bars)
            except (KeyboardInterrupt, SystemExit) as end:
                raise Unfinished(jobs[i:], end) from None
            statuses.append(status)
            outcomes |= {job.experiment.name: outcome} if outcome else {}
            say(console, text)
            bars.advance(every)
    say(console, *comparison(outcomes))
    return max(statuses)


def attempt(job: Job, bars: Progress) -> tuple[Outcome | None, int, str]:
    """One job: what it has left, its exit status, and what there is to say of it."""
    name = job.experiment.name
    process.free_mappings()  # one process runs all experiments
    with progress.own_bar(bars, f"{name} ({last_time(job)})"):
        try:
            outcome = run_one(job, bars)
        except (NotJudgedError, OwnedError) as error:
            return None, 1, f"error: {error}"
        except DivergedError as error:
            kept = f"its checkpoints are kept in {job.checkpoints}"
            return None, DIVERGED, f"error: {name}: {error}; {kept}"
    head = f"{name} ({job.tier}): {describe(outcome.facts)}; {job.folder / 'figure.pdf'}"
    trial = ("a trial: the sizes of the smoke tier are too small to judge by",)
    answer = outcome.answer + trial * (job.tier == TIERS[0])
    lines = (textwrap.wrap(line, 96, subsequent_indent="    ") for line in answer)
    return outcome, 0, "\n    ".join([head, *(row for rows in lines for row in rows)])


def say(console: Console, *texts: str) -> None:
    """Lines above the bars."""
    for text in texts:
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def forecasts(jobs: Iterable[Job]) -> list[str]:
    """A line for each job of a tier that takes hours: what it took last time, and whether a CPU is
    all that there is for it."""
    long = [job for job in jobs if job.tier in TIERS[2:]]
    return [f"{job.experiment.name} ({job.tier}){_device()}: {last_time(job)}" for job in long]


def _device() -> str:
    import jax

    return f", on {cores()} cores of a CPU" if jax.default_backend() == "cpu" else ""


def last_facts(job: Job) -> dict:
    """What the last result of the same configuration tells of its run, on this machine if one was
    reproduced here; nothing where none lies."""
    here = folder_of(job.experiment, job.tier, reproductions())
    for folder in (job.folder, here, folder_of(job.experiment, job.tier)):
        with contextlib.suppress(RefusalError):  # a damaged record is replaced by this run's
            facts = last_run(folder) or {}
            if facts.get("config") == results.plain(job.config):
                return {key: value for key, value in facts.items() if value is not None}
    return {}


def last_time(job: Job) -> str:
    """As "last time 0:01:40, cold, 0.4 GB"; of changed values what the tier's own took."""
    facts, when = last_facts(job), "last time"
    if not facts and job.config != (own := job.experiment.tiers[job.tier]):
        facts, when = last_facts(replace(job, config=own)), "with the tier's own values it took"
    seconds = facts.get("wall_time")
    parts = ["first time" if seconds is None else f"{when} {clock_word(seconds)}"]
    parts += [facts["start"]] if "start" in facts else []
    parts += [f"{facts['memory'] / 1e9:.1f} GB"] if "memory" in facts else []
    return ", ".join(parts)
