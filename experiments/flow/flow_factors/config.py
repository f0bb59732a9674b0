"""The sizes and the statements of `flow_factors`."""

from dataclasses import dataclass

from experiments.flow.flow_factors.statements import statements as statements
from lsa_lab.harness import checks

STEPS = ("best for the law", "1/|x|²", "1")  # the first is the model of the statements
QUANTITIES = ("contribution", "flow", "error reduction")
FORMS = ("product", "sum")
SCALES = ("squares", "sizes")  # of the quantities: c², |J|² and the reduction, or their roots
PREDICTORS = ("flow", "contribution", "relevance", "novelty", "relevance + novelty")
OVER = ("demonstrations", "classes")  # what a rank correlation is over: classes of the predictor
# Demonstrations by what is zero: nothing, the relevance s, the novelty r, or both.
KINDS = {"neither": "", "irrelevant": "s = 0", "learned": "r = 0", "both": "s = r = 0"}


@dataclass(frozen=True)
class Config:
    """One demonstration in front of attention that knows some coordinates of the task.

    w ~ N(0, I), of which the weights know ``known`` coordinates; covariates are sparse, E|x|² = 1.
    """

    d: int = 8
    known: int = 4  # coordinates of w that the weights know
    density: float = 0.3  # of the non-zeros of a demonstration
    query_density: float = 0.5  # of the non-zeros of a query
    draws: int = 40_000  # of task, demonstration and query, for each run
    runs: int = 16
    classes: int = 10  # of each predictor: deciles of those that are not zero
    seed: int = 0
    # Criteria.
    exact: float = 1e-10  # at most this, relative to the typical size, is rounding
    predicts: float = 0.3  # a rank correlation of at least this is a prediction
    rises: float = 0.9  # a rank correlation over classes of at least this is a rise
    helps: float = 0.9  # share of demonstrations that lower the error, if they do as a rule
    less: float = 1 / 1.1  # a flow relative to another of at most this is less

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 2, 256)
        checks.between(self, "known", 1, self.d - 1)
        for name in ("density", "query_density"):
            checks.positive(self, name)
            checks.between(self, name, None, 1.0)
        checks.between(self, "draws", 100, None)
        checks.between(self, "runs", 2, None)
        checks.between(self, "classes", 2, 50)
        for name in ("predicts", "rises", "helps", "less"):
            checks.between(self, name, 0.0, 1.0)
        checks.positive(self, "exact")
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(d=4, known=2, draws=1000, runs=2, classes=3),
    "laptop": Config(),
    "paper": Config(draws=1_000_000, runs=64, classes=20),
}


def best_step(config) -> float:
    """1/E|x|⁴: the step with the least mean error after one demonstration, for every ``known``.

    It removes the share (1/E|x|⁴)/d of the error without demonstrations (derived here).
    """
    return 1 / (3 / (config.density * config.d) + (config.d - 1) / config.d)
