"""The sizes of `grads` and the grid of its sweep, fixed before its first run."""

from dataclasses import dataclass

from experiments.flow.grads.statements import statements as statements
from lsa_lab.harness import checks

TASKS = ("prior", "duplicates", "table")  # the axis "setting"
SWEEP = ("density", "known", "noise")  # the axes of the sweep
PROMPTS = ("alone", "pool")  # in which the flow of a demonstration is taken

# Rules by which demonstrations are chosen.
FLOWS = ("GradS", "slot's flow", "label's flow", "flow × input", "contribution")
DIVERSE = ("determinantal", "farthest point", "relevance × determinantal")
LAST = "GradS, last layer"
RECOMPUTED = ("GradS, recomputed", "contribution, recomputed")
# No rivals: the slot's flow is GradS, the label's the relevance, flow × input by Euler twice the
# contribution, and the last two are GradS of another layer and after each pick.
VARIANTS = ("GradS", "slot's flow", "label's flow", "flow × input", LAST, "GradS, recomputed")
PRODUCTS = ("contribution", "contribution, recomputed")  # relevance times novelty


@dataclass(frozen=True)
class Config:
    """Demonstrations selected from a pool, for attention that knows some of the task.

    w ~ N(0, I), of which the weights know ``known`` coordinates; covariates have few non-zeros,
    E|x|² = 1, and so E(w·x)² = 1. On the table the weights know half of the covariates.
    """

    d: int = 8
    known: int = 4  # coordinates of w that the weights know
    density: float = 0.3  # of the non-zeros of a demonstration
    noise: float = 0.0  # standard deviation of a demonstration's label; the query's has none
    densities: tuple[float, ...] = (0.15, 0.3, 0.6, 1.0)  # of the sweep, as the next two
    knowns: tuple[int, ...] = (2, 4, 6)  # known coordinates in the sweep
    noises: tuple[float, ...] = (0.0, 0.5)  # of the labels in the sweep
    query_density: float = 0.5  # of the non-zeros of a query
    distinct: int = 8  # demonstrations that a pool with duplicates repeats
    closeness: float = 0.98  # correlation of a duplicate's covariates with those of its original
    pool: int = 32  # demonstrations to select from
    pools: tuple[int, ...] = (8, 32, 128)  # ``pool`` and ``small`` are among them
    small: int = 8  # a pool of which every subset is tried
    shots: tuple[int, ...] = (1, 2, 4, 8, 16)  # demonstrations that are selected
    judged: int = 4  # shots at which the claims are made
    depth: int = 8  # layers: steps of the learner, each 1 / λ_max of its prompt
    ridge: float = 0.01  # of the determinant, over the mean square of the points
    runs: int = 16
    validation: int = 8  # runs more, which choose the strongest rival
    queries: int = 200  # of each run, each with a task and a pool of its own
    few: int = 50  # of these, for what is costly: the greedy oracle and the flow of joining
    seed: int = 1
    # Criteria.
    ratio: float = 1.0  # the error of one over that of another, at most this, is a gain
    predicts: float = 0.3  # a rank correlation of at least this is a prediction

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 2, 10)  # the covariates of the table
        checks.between(self, "known", 1, self.d - 1)
        checks.each_between(self, "knowns", 1, self.d - 1)
        for name in ("density", "query_density", "closeness"):
            checks.positive(self, name)
            checks.between(self, name, None, 1.0)
        checks.each_positive(self, "densities")
        checks.each_between(self, "densities", None, 1.0)
        checks.between(self, "noise", 0.0, None)
        checks.each_between(self, "noises", 0.0, None)
        checks.between(self, "distinct", 1, None)
        checks.each_between(self, "pools", 2, 200)  # half of the table has 221 rows
        for name in ("pool", "small"):
            checks.one_of(self, name, self.pools)
        checks.between(self, "small", 2, 16)
        checks.each_between(self, "shots", 1, self.pool)
        checks.one_of(self, "judged", self.shots)
        checks.between(self, "judged", 1, min(self.pools))
        checks.between(self, "depth", 2, 16)
        checks.between(self, "runs", 2, None)
        for name in ("validation", "queries"):
            checks.between(self, name, 1, None)
        checks.between(self, "few", 1, self.queries)
        for name in ("ridge", "ratio"):
            checks.positive(self, name)
        checks.between(self, "predicts", 0.0, 1.0)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        densities=(0.3, 1.0),
        knowns=(4,),
        noises=(0.0, 0.5),
        pool=6,
        pools=(6,),
        small=6,
        shots=(1, 2),
        judged=2,
        depth=2,
        runs=2,
        validation=2,
        queries=4,
        few=2,
    ),
    "laptop": Config(),
    # 40 runs from seed 11 left six rows undecided, as these do.
    "paper": Config(runs=80, seed=12),
    "gpu": Config(runs=32, validation=16, queries=2000, few=200),
}
