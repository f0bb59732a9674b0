"""Sizes, tiers, and what is claimed with its bounds: fixed before the first run.

No jax in this door, so that a wrong ``--config.KEY`` is refused at once.
"""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    """One layer, trained from scratch in several runs, beside the best single step of descent."""

    n: int = 10  # demonstrations
    d: int = 4  # covariates
    noise_std: float = 0.5  # of the labels
    steps: int = 400  # of training
    learning_rate: float = 0.05  # Adam's, at the start
    runs: int = 9  # trainings that differ in their seed alone
    test_prompts: int = 4000
    seed: int = 0
    # The criterion.
    as_good: float = 1.05  # the layer's risk over the step's: at most this is as good

    def __post_init__(self):
        checks.kinds(self)
        for name in ("n", "d", "steps", "test_prompts"):
            checks.between(self, name, 1)
        for name in ("noise_std", "learning_rate", "as_good"):
            checks.positive(self, name)
        checks.between(self, "runs", 2)
        checks.seed(self)


TIERS = {
    "smoke": Config(d=2, steps=20, runs=2, test_prompts=20),  # seconds: does it run?
    "laptop": Config(),
    "paper": Config(n=40, d=20, steps=20_000, test_prompts=10_000),
}


def statements(config):
    return (
        Statement(
            "as_good",
            "ours",  # who says so: a paper and its theorem, "derived here", "ours"
            f"One trained layer does as well as the best step of descent at n = {config.n}",
            "the layer's risk over that of the step, on the same prompts",
            "ratio",  # the geometric mean over runs, with its 95 % interval
            at_most=config.as_good,
        ),
    )
