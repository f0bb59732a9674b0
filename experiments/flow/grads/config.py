"""The sizes of `grads` and the grid of its sweep, fixed before its first run."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, at_most, between

TASKS = ("prior", "duplicates", "table")  # the axis "setting"
SWEEP = ("density", "known", "noise")  # the axes of the sweep
# Rules by which demonstrations are chosen.
FLOWS = ("GradS", "contribution")
DIVERSE = ("determinantal", "farthest point", "relevance × determinantal")
LAST = "GradS, last layer"
RECOMPUTED = "contribution, recomputed"
VARIANTS = ("GradS", LAST)  # no rivals
RELEVANCE = "relevance"  # the rival of all tasks

Count = Annotated[int, at_least(1)]
Share = Annotated[float, POSITIVE, at_most(1.0)]


@dataclass(frozen=True)
class Config(Bounded):
    """Demonstrations selected from a pool, for attention that knows some of the task.

    w ~ N(0, I), of which the weights know ``known`` coordinates; covariates have few non-zeros,
    E|x|² = 1, and so E(w·x)² = 1. On the table the weights know half of the covariates.
    """

    d: Annotated[int, between(2, 10)] = 8  # at most the covariates of the table
    known: Count = 4  # coordinates of w that the weights know, fewer than d
    density: Share = 0.3  # of the non-zeros of a demonstration
    noise: Annotated[float, at_least(0.0)] = 0.0  # standard deviation of the pool's labels
    # Of the sweep, and the next two.
    densities: Annotated[tuple[float, ...], POSITIVE, at_most(1.0)] = (0.15, 0.3, 0.6, 1.0)
    knowns: Annotated[tuple[int, ...], at_least(1)] = (2, 4, 6)  # known coordinates, fewer than d
    noises: Annotated[tuple[float, ...], at_least(0.0)] = (0.0, 0.5)  # of the labels
    query_density: Share = 0.5  # of the non-zeros of a query
    distinct: Count = 8  # demonstrations that a pool with duplicates repeats
    closeness: Share = 0.98  # correlation of a duplicate's covariates with those of its original
    pool: Annotated[int, between(2, "rows")] = 32  # demonstrations to select from
    # Demonstrations that are drawn, the pool the first of them; half of the table has 221 rows.
    rows: Annotated[int, between(2, 200)] = 128
    shots: Annotated[tuple[int, ...], at_least(1)] = (1, 2, 4, 8, 16)  # selected, of ``pool``
    judged: int = 4  # shots at which the claims are made
    depth: Annotated[int, between(2, 16)] = 8  # steps of the learner, each 1 / λ_max of its prompt
    ridge: Annotated[float, POSITIVE] = 0.01  # of the determinant, over the points' mean square
    runs: Annotated[int, at_least(2)] = 16
    validation: Count = 8  # runs more, which choose the strongest rival
    queries: Count = 200  # of each run, each with a task and a pool of its own
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "known", 1, self.d - 1)
        checks.each_between(self, "knowns", 1, self.d - 1)
        checks.each_between(self, "shots", 1, self.pool)
        checks.one_of(self, "judged", self.shots)


_GRID = dict(densities=(0.3, 1.0), knowns=(4,), noises=(0.0, 0.5))
_TINY = dict(pool=6, rows=6, shots=(1, 2), judged=2, depth=2, runs=2, validation=2, queries=4)
TIERS = {
    "smoke": Config(**_GRID, **_TINY),
    "laptop": Config(),
    # 40 runs from seed 11 left six rows undecided, as these do.
    "paper": Config(runs=80, seed=12),
}
