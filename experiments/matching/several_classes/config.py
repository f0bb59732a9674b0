"""The classes, rules and sizes of `several_classes`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

# Gradients of W x and of W x + c by the logistic loss of several classes; random subsets.
RULES = ("matching", "matching, intercept", "random")


@dataclass(frozen=True)
class Config(Bounded):
    """Subsets of pools with a cluster for each class: their shares, and whom they teach.

    A3's tasks have 3 to 5 classes (MNLI, HellaSwag, SST-5, CommonsenseQA).
    """

    d: Annotated[int, between(1, 64)] = 8
    m: Annotated[int, at_least(2)] = 1024  # the pool
    n: Annotated[int, at_least(1)] = 128  # A3's table 6
    classes: Annotated[tuple[int, ...], between(2, 20)] = (3, 5)  # numbers of classes of a pool
    # Decline of the shares, in a line from 1 + this to 1 - this times the mean.
    decline: Annotated[float, between(0, 0.9)] = 0.5
    separation: Annotated[float, between(0, 10)] = 2.0  # distance of each cluster's centre from 0
    # Steps of the descent that answers for each class, which a linear stack computes.
    depth: Annotated[int, at_least(1)] = 16
    step: Annotated[float, POSITIVE] = 0.15  # size of each
    epochs: Annotated[int, at_least(1)] = 10  # of the proxies' training
    batch: Annotated[int, at_least(1)] = 64  # examples of the pool in a training step
    learning_rate: Annotated[float, POSITIVE] = 0.1  # of the proxies
    # Checkpoints of each training, at which gradients are matched.
    saves: Annotated[int, at_least(1)] = 10
    random_draws: Annotated[int, at_least(2)] = 20  # random subsets, to compare with
    queries: Annotated[int, at_least(1)] = 200  # of each class
    runs: Annotated[int, at_least(2)] = 36
    seed: Seed = 2

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "n", 1, self.m - 1)


TIERS = {
    "smoke": Config(d=2, m=40, n=12, depth=2, saves=2, random_draws=4, queries=8, runs=2),
    "laptop": Config(),
    "paper": Config(
        m=8192, classes=(2, 3, 4, 5, 6), random_draws=50, queries=1000, runs=144, seed=3
    ),
}


def shares(config, classes: int) -> tuple[float, ...]:
    """The classes' shares, declining in a line."""
    steps = [1 + config.decline * (1 - 2 * k / (classes - 1)) for k in range(classes)]
    return tuple(step / classes for step in steps)
