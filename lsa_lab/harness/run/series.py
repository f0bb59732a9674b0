"""Experiments one after the other, and what is left of each and of all of them."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from lsa_lab.harness.run.clock import Clock
from lsa_lab.harness.run.estimate import beforehand, past_of
from lsa_lab.harness.run.outcomes import Outcome, comparison, describe
from lsa_lab.harness.run.progress import Bars, Row, repeated, screen
from lsa_lab.harness.run.runner import Job, NotJudgedError, run_one, run_share
from lsa_lab.store.safe_files import OwnedError
from lsa_lab.training.status import DivergedError

DIVERGED = 3  # the exit status


class Unfinished(KeyboardInterrupt):
    """Ctrl-C, with the jobs that are not done, the rows of those that had begun, and the words of a
    command line that does them."""

    def __init__(self, jobs: Sequence[Job], rows: Mapping[str, Sequence[Row]]):
        super().__init__()
        self.jobs = jobs
        self.rows = rows
        self.words: list[str] = []
        self.why = "interrupted"

    def __str__(self) -> str:
        return f"{self.why}; {self.left}" if self.left else self.why

    @property
    def left(self) -> str:
        """How far each is that had begun, and which had not."""
        parts = [_how_far(name, rows) for name, rows in self.rows.items()]
        names = [job.experiment.name for job in self.jobs if job.experiment.name not in self.rows]
        parts += [f"not begun: {', '.join(names)}"] if names else []
        return "; ".join(parts)


def run(jobs: list[Job]) -> int:
    """Carry the jobs out, one after the other; the exit status: 1 if one has no result, or none
    that is judged, 3 if that is because a training diverged.

    Of several processes that share each computation, one leads; the others say nothing.
    """
    from lsa_lab.store import processes

    if not processes.leads():
        return _follow(jobs)
    console, pasts = Console(), [past_of(job) for job in jobs]
    say(console, *beforehand(jobs))
    clock = Clock(pasts)
    bars = Bars(clock)
    failures: list[int] = []
    outcomes: dict[str, Outcome] = {}

    def rows() -> list[Row]:
        own, over = bars.rows(), len(outcomes) + len(failures)
        return [whole(len(jobs), over, clock), *own] if len(jobs) > 1 else own

    with screen(rows, console), repeated(lambda: say(console, *bars.estimates()), 1.0):
        for i, (job, past) in enumerate(zip(jobs, pasts, strict=True)):
            name = job.experiment.name
            with bars.experiment(name, past):
                try:
                    outcome = run_one(job, bars)
                except KeyboardInterrupt:
                    raise Unfinished(jobs[i:], {name: bars.rows()}) from None
                except (NotJudgedError, OwnedError) as error:
                    if processes.count() > 1 and isinstance(error, OwnedError):
                        raise  # the others are computing it
                    say(console, f"error: {error}")
                    failures.append(1)
                    continue
                except DivergedError as error:
                    say(console, diverged(job, error))
                    failures.append(DIVERGED)
                    continue
            outcomes[name] = outcome
            say(console, done(job, outcome))
    if outcomes:
        say(console, comparison(outcomes))
    return max(failures, default=0)


def say(console: Console, *texts: str) -> None:
    """Lines above the bars."""
    for text in texts:
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def done(job: Job, outcome: Outcome) -> str:
    """What a finished experiment has come to."""
    figure = job.folder / "figure.pdf"
    return f"{job.experiment.name} ({job.tier}): {describe(outcome.facts)}; {figure}"


def diverged(job: Job, error: DivergedError) -> str:
    """What an experiment without a result has come to."""
    return f"error: {job.experiment.name}: {error}; its checkpoints are kept in {job.checkpoints}"


def whole(count: int, over: int, clock: Clock) -> Row:
    """The bar of all experiments."""
    text = f"all {count} experiments, {over} done"
    return Row(text, clock.share_of_all(), clock.elapsed_of_all(), str(clock.left()))


def _follow(jobs: list[Job]) -> int:
    for i, job in enumerate(jobs):
        try:
            run_share(job)
        except KeyboardInterrupt:
            raise Unfinished(jobs[i:], {}) from None
    return 0


def _how_far(name: str, rows: Sequence[Row]) -> str:
    """What the experiment's own bar says or, where its end is not known, that of its last part."""
    if not rows or not rows[0].elapsed:
        return f"{name} has hardly begun"
    own, *parts = rows
    if own.share is not None:
        return f"{name} is at {own.percent}, {own.left}"
    at = [f"{part.percent} of {part.text}" for part in parts if part.percent and not part.over]
    return f"{name} is at {at[-1]}, {own.left}" if at else f"{name} has begun, {own.left}"
