"""The sizes and the statements of `training_dynamics`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    """The closed laws of gradient flow beside population descent and stochastic descent."""

    d: int = 8
    n: int = 32
    runs: int = 12
    initial_step: float = 0.01  # a_0 = u U, the effective step at time 0
    population_rate: float = 1e-3  # learning rate of descent on the population loss
    # Learning rate of descent on fresh batches. A run at 0.01 with batches of 128 was 8 % late at
    # its half: the law is of gradient flow, and 0.01 is no longer small.
    stochastic_rate: float = 5e-3
    batch: int = 256  # prompts in a step of stochastic descent
    horizon: float = 4.0  # time shown, in multiples of the half-time
    eigenvalues: tuple[float, ...] = (2.0, 1.0, 0.5, 0.25)  # of the covariance with modes
    mode_time: float = 25.0  # time up to which the modes are followed
    head_size: float = 0.02  # of separate keys, queries and values at time 0
    head_time: float = 2000.0  # time up to which separate heads are followed
    points: int = 100  # times at which a path is recorded
    seed: int = 1
    # Criteria.
    stochastic_error: float = 0.05  # |a - law| / a(∞) of stochastic descent, averaged over time
    half_time_error: float = 0.05  # relative, of the measured half-time
    later: float = 1.0  # half-time of a mode over that of the mode with the next larger λ

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.between(self, "n", 1, None)
        checks.between(self, "runs", 2, None)
        checks.between(self, "batch", 1, None)
        checks.between(self, "points", 10, None)
        checks.each_positive(self, "eigenvalues")
        for name in ("initial_step", "population_rate", "stochastic_rate", "horizon"):
            checks.positive(self, name)
        for name in ("mode_time", "head_size", "head_time"):
            checks.positive(self, name)
        for name in ("stochastic_error", "half_time_error", "later"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        runs=2,
        population_rate=0.02,
        stochastic_rate=0.02,
        batch=8,
        mode_time=2.0,
        points=10,
    ),
    "laptop": Config(),
    "paper": Config(d=16, n=64, runs=32, batch=4096, stochastic_rate=1e-3),
}


def statements(config) -> tuple[Statement, ...]:
    source = "derived here from Zhang et al. 2306.09927"
    fresh = f"{config.runs} fresh runs, 8 before"
    return (
        Statement(
            "samples",
            source,
            "Descent on fresh samples, with every entry free, follows the logistic law of the flow",
            "|a - law| / a(∞), averaged over time",
            at_most=config.stochastic_error,
            redrawn=fresh,
        ),
        Statement(
            "half_time",
            source,
            "On samples half of the limit is reached after ln(1/(γa_0) - 1) / (2λ²√d)",
            "|measured / formula - 1| of that time",
            at_most=config.half_time_error,
            redrawn=fresh,
        ),
        Statement(
            "order",
            source,
            "On samples modes are learnt in the order of the squared eigenvalues",
            "the time to half of a mode's limit over that of the mode before, where least,",
            "ratio",
            at_least=config.later,
            revision="it was the share of runs in that order, which had no spread",
            redrawn=fresh,
        ),
    )
