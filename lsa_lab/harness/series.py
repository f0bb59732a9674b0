"""Experiments one after the other, and what is left of each and of all of them."""

import contextlib

from rich.console import Console

from lsa_lab.harness import measured
from lsa_lab.harness.clock import Clock, Past
from lsa_lab.harness.folders import folder_of
from lsa_lab.harness.outcomes import comparison, describe
from lsa_lab.harness.overrides import RefusalError
from lsa_lab.harness.progress import bars
from lsa_lab.harness.records import last_run
from lsa_lab.harness.runner import Job, NotJudgedError, run_one, run_share
from lsa_lab.safe_files import OwnedError


class Unfinished(KeyboardInterrupt):
    """Ctrl-C, with the jobs that are not done and the words of a command line that does them."""

    def __init__(self, jobs: list[Job]):
        super().__init__()
        self.jobs = jobs
        self.words: list[str] = []


def run(jobs: list[Job]) -> int:
    """Carry the jobs out, one after the other; how many have no result, or none that is judged.

    Of several processes that share each computation, one leads; the others say nothing.
    """
    from lsa_lab import hosts

    if not hosts.leads():
        return _follow(jobs)
    console = Console()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    pasts = [_past(job) for job in jobs]
    clock, outcomes, failed = Clock(pasts), {}, 0
    with bars(clock, console) as progress:
        several = f"all {len(jobs)} experiments"
        if len(jobs) > 1:
            overall = progress.add_whole(several, clock.share_of_all, clock.left)
        for i, (job, past) in enumerate(zip(jobs, pasts, strict=True)):
            name = job.experiment.name
            if len(jobs) > 1:
                progress.update(overall, description=f"{several}, {i} done")
            clock.begin()
            whole = progress.add_whole(f"{name} ({past})", clock.share, clock.left_of_this)
            try:
                outcomes[name] = run_one(job, progress)
            except KeyboardInterrupt:
                raise Unfinished(jobs[i:]) from None
            except (NotJudgedError, OwnedError) as error:
                if hosts.count() > 1 and isinstance(error, OwnedError):
                    raise  # the others are computing it
                say(f"error: {error}")
                failed += 1
                continue
            finally:
                progress.take_away()
                progress.remove_task(whole)
            summary = describe(outcomes[name].facts)
            say(f"{name} ({job.tier}): {summary}; {job.folder / 'figure.pdf'}")
    if outcomes:
        say(comparison(outcomes))
    return failed


def _follow(jobs: list[Job]) -> int:
    for i, job in enumerate(jobs):
        try:
            run_share(job)
        except KeyboardInterrupt:
            raise Unfinished(jobs[i:]) from None
    return 0


def _past(job: Job) -> Past:
    usual = folder_of(job.experiment, job.tier)  # of a trial in another folder, the tier's result
    facts = None
    with contextlib.suppress(RefusalError):  # a damaged record is replaced by this run's
        facts = last_run(job.folder) or last_run(usual)
    return measured.last(job.identity, facts, job.config)[0]
