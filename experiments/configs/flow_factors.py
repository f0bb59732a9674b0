"""Settings and criteria of `flow_factors`, fixed before its first run."""

from dataclasses import dataclass

from experiments import checks


@dataclass(frozen=True)
class Config:
    """One demonstration in front of attention that knows some coordinates of the task.

    w ~ N(0, I), of which the weights know ``known`` coordinates; covariates have few non-zeros,
    and E|x|² = 1.
    """

    d: int = 8
    known: int = 4
    density: float = 0.3  # of the non-zeros of a demonstration
    query_density: float = 0.5
    draws: int = 40_000  # of task, demonstration and query, for each run
    runs: int = 16
    classes: int = 10  # of relevance and of novelty: deciles of those that are not zero
    seed: int = 0
    # Criteria.
    exact: float = 1e-10  # at most this, relative to the typical size, is rounding
    predicts: float = 0.3  # a rank correlation of at least this is a prediction
    helps: float = 0.9  # share of demonstrations that lower the error, if they do as a rule

    def __post_init__(self):
        checks.between(self, "d", 2, 256)
        checks.between(self, "known", 1, self.d - 1)
        for name in ("density", "query_density"):
            checks.positive(self, name)
            checks.between(self, name, None, 1.0)
        checks.between(self, "draws", 100, None)
        checks.between(self, "runs", 2, None)
        checks.between(self, "classes", 2, 50)
        checks.between(self, "predicts", 0.0, 1.0)
        checks.between(self, "helps", 0.0, 1.0)
        checks.positive(self, "exact")
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(d=4, known=2, draws=1000, runs=2, classes=3),
    "laptop": Config(),
    "paper": Config(draws=1_000_000, runs=64, classes=20),
}
