"""The sizes of `flow_factors`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, at_most, between

QUANTITIES = ("contribution", "flow", "error reduction")
FORMS = ("product", "sum")
SCALES = ("squares", "sizes")  # of the quantities: c², |J|² and the reduction, or their roots
PREDICTORS = ("flow", "contribution", "relevance", "novelty", "relevance + novelty")
OVER = ("demonstrations", "classes")  # what a rank correlation is over: classes of the predictor
# Demonstrations by what is zero: nothing, the relevance s, the novelty r, or both.
KINDS = {"neither": "", "irrelevant": "s = 0", "learned": "r = 0", "both": "s = r = 0"}

Share = Annotated[float, POSITIVE, at_most(1.0)]


@dataclass(frozen=True)
class Config(Bounded):
    """One demonstration in front of attention that knows some coordinates of the task.

    w ~ N(0, I), of which the weights know ``known`` coordinates; covariates are sparse, E|x|² = 1.
    """

    d: Annotated[int, between(2, 256)] = 8
    known: Annotated[int, at_least(1)] = 4  # coordinates of w that the weights know, fewer than d
    density: Share = 0.3  # of the non-zeros of a demonstration
    query_density: Share = 0.5  # of the non-zeros of a query
    draws: Annotated[int, at_least(100)] = 40_000  # of task, demonstration and query, for each run
    runs: Annotated[int, at_least(2)] = 16
    # Of each predictor: deciles of those that are not zero.
    classes: Annotated[int, between(2, 50)] = 10
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "known", 1, self.d - 1)


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
