"""The sizes of `amplification_limits`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

DIRECTIONS = ("least", "largest")  # change of the log ratio that the ascent seeks

Width = Annotated[int, between(1, 64)]
Depth = Annotated[int, between(2, 8)]
Count, Several = Annotated[int, at_least(1)], Annotated[int, at_least(2)]
Positive = Annotated[float, POSITIVE]
Feedbacks = Annotated[tuple[float, ...], between(-1.0, 1.0)]
Positives = Annotated[tuple[float, ...], POSITIVE]


@dataclass(frozen=True)
class Config(Bounded):
    """Counterexamples to amplification, found by ascent, and maps of where it holds.

    The ascent moves the weights of one tied linear layer, two demonstrations and a query. All have
    a fixed length: tokens 1, and |w_kq|_F = |w_pv|_F = √budget. Maps have the stacks, the
    demonstrations and the gain of `amplification`.
    """

    search_d: Width = 1  # covariates in the ascent
    search_depth: Depth = 4  # layers in the ascent
    budgets: Positives = (0.03, 0.1, 0.3, 1.0, 3.0)  # of its weights, as above
    shown: float = 1.0  # one of them: the budget whose counterexample is printed
    lead: Positive = 0.3  # log ratio that the demonstration ahead has after one layer, at least
    cap: Positive = 7.0  # changes of the log ratio far beyond are not pursued
    steps: Count = 300  # of the ascent
    learning_rate: Positive = 0.05  # of the ascent
    restarts: Several = 16  # of the ascent, at each budget
    copies: Count = 64  # of what was found, every number with a relative error
    error: Positive = 0.05  # the standard deviation of that relative error
    d: Width = 5  # covariates in the maps
    depth: Depth = 6  # layers in the maps
    # w_kq = |f| cI + √(1 - f²) noise, w_pv the same with the sign of f: f is the feedback.
    feedbacks: Feedbacks = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
    gains: Positives = (0.03, 0.1, 0.3, 1.0, 3.0)  # of the stacks in the maps
    runs: Several = 16
    pairs: Several = 128  # of demonstrations, for each run
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        checks.one_of(self, "shown", self.budgets)
        if min(self.feedbacks) != -1 or max(self.feedbacks) != 1:
            raise ValueError(
                f"feedbacks = {self.feedbacks!r}: choose -1 and 1 among them; nearest "
                f"{tuple(sorted({-1.0, *self.feedbacks, 1.0}))}"
            )


TIERS = {
    "smoke": Config(
        search_depth=2,
        budgets=(0.3, 1.0),
        steps=10,
        restarts=2,
        copies=4,
        d=2,
        depth=2,
        feedbacks=(-1.0, 0.0, 1.0),
        gains=(0.3, 1.0),
        runs=2,
        pairs=16,
    ),
    "laptop": Config(),
    "paper": Config(
        search_d=4,
        search_depth=8,
        steps=3000,
        learning_rate=0.01,
        restarts=64,
        depth=8,
        runs=64,
        pairs=1024,
    ),
}
