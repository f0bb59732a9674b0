"""The pools, rules, sizes and statements of `coverage`, fixed before its first run."""

from dataclasses import dataclass
from functools import partial

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

KINDS = {  # of the labels: PoolTask's own words
    "one task": {},
    "a task each": {"num_weights": "cluster"},
    "cluster as label": {"labels": "cluster"},
}
TAGS = dict(zip(KINDS, ("one_task", "own_tasks", "labels"), strict=True))  # in names of statements
RULES = ("matching", "moments", "k-means", "determinantal", "random", "stratified")
GROUPS = ("majority", "minority")


@dataclass(frozen=True)
class Config:
    """Subsets of pools with clusters 9:1: their shares, and the errors of either group."""

    d: int = 8
    m: int = 400
    minority: float = 0.1  # share of the second cluster
    separation: float = 2.0  # distance of each cluster's centre from 0
    noise_std: float = 0.5
    sizes: tuple[int, ...] = (10, 20, 40, 80, 160)  # a tenth of each is a whole number
    depth: int = 16  # of the stack that answers: steps of gradient descent
    step: float = 0.15
    epochs: int = 10
    batch: int = 64
    learning_rate: float = 0.1
    saves: int = 10
    random_draws: int = 20
    queries: int = 128  # of each group
    runs: int = 16
    seed: int = 0
    # Criteria, on medians over runs; random and stratified are the mean of the draws.
    shares: float = 0.5  # KL of matching over that of random subsets, at the worst size
    minority_error: float = 1.0  # of matching over random, at the worst size
    strata: float = 1.1  # error of stratified subsets over that of matching, at the worst size
    favours: float = 1.0  # gain of the majority over gain of the minority, at the size with least

    def __post_init__(self):
        checks.between(self, "d", 1, 64)
        checks.between(self, "m", 2, None)
        checks.between(self, "minority", 0.01, 0.5)
        checks.between(self, "separation", 0, 10)
        checks.each_between(self, "sizes", 1, self.m)
        for name in ("depth", "epochs", "batch", "saves", "queries"):
            checks.between(self, name, 1, None)
        for name in ("random_draws", "runs"):
            checks.between(self, name, 2, None)
        for name in ("noise_std", "step", "learning_rate"):
            checks.positive(self, name)
        for name in ("shares", "minority_error", "strata", "favours"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(d=2, m=40, sizes=(10,), depth=2, saves=2, random_draws=4, queries=8, runs=2),
    "laptop": Config(),
    "paper": Config(d=16, m=2000, sizes=(10, 20, 40, 80, 160, 320), queries=512, runs=64),
}


def shares(config) -> tuple[float, float]:
    """The groups' shares of a pool."""
    return 1 - config.minority, config.minority


def statements(config) -> tuple[Statement, ...]:
    median = partial(Statement, statistic="median")
    bias, rows = "A3's open question on bias", []
    for kind, tag in TAGS.items():
        rows += [
            median(
                f"{tag}_shares",
                "A3 (CLG), table 6",
                f"Matching keeps the clusters' shares better than random subsets do ({kind})",
                "the KL over the mean of random subsets, at the worst size",
                at_most=config.shares,
                note="statistic changed after a first run: it was over that of the same run, at "
                "times 0/0",
            ),
            median(
                f"{tag}_minority",
                bias,
                f"Matching teaches the minority no worse than random subsets do ({kind})",
                "the error of the minority over that of random subsets, at the worst size",
                at_most=config.minority_error,
            ),
            median(
                f"{tag}_favours",
                bias,
                f"What matching gains goes to the majority more than to the minority ({kind})",
                "the minority's relative error over the majority's, at the size where it is least",
                at_least=config.favours,
            ),
            median(
                f"{tag}_strata",
                "asked here of A3 (CLG)",
                f"Stratified random subsets teach as well as matched ones ({kind})",
                "the error, groups weighed as in pools, over that of matching, at the worst size",
                at_most=config.strata,
            ),
        ]
    return tuple(rows)
