"""The sizes, each with its bounds, and what they are at each tier.

No jax in this door, so that a wrong ``--config.KEY`` is refused at once.
"""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least


@dataclass(frozen=True)
class Config(Bounded):
    """One layer, trained from scratch in several runs, beside the best single step of descent."""

    n: Annotated[int, at_least(1)] = 10  # demonstrations
    d: Annotated[int, at_least(1)] = 4  # covariates
    noise_std: Annotated[float, POSITIVE] = 0.5  # of the labels
    steps: Annotated[int, at_least(1)] = 400  # of training
    learning_rate: Annotated[float, POSITIVE] = 0.05  # Adam's, at the start
    runs: Annotated[int, at_least(2)] = 9  # trainings that differ in their seed alone
    test_prompts: Annotated[int, at_least(1)] = 4000
    seed: Seed = 0


TIERS = {
    "smoke": Config(d=2, steps=20, runs=2, test_prompts=20),  # seconds: does it run?
    "laptop": Config(),
    "paper": Config(n=40, d=20, steps=20_000, test_prompts=10_000),
}
