"""The pools, rules and sizes of `coverage`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

KINDS = {  # of the labels: PoolTask's own words
    "one task": {},
    "a task each": {"num_weights": "cluster"},
    "a class each": {"labels": "cluster", "noise_std": 0.0},
}
CLASSES = "a class each"  # labels that the proxy learns by the logistic loss, as ±1
ORDER = (CLASSES, "one task", "a task each")  # the headline's kind first
# Gradients of w·x, of w·x + c, and of that without those at w = 0, c = 0, before training.
PROXIES = ("matching", "matching, intercept", "intercept, later")
WHITE = "matching, whitened"  # gradients of w·x
RULES = (*PROXIES, "moments", "k-means", "determinantal", WHITE, "random", "stratified")
GROUPS = ("majority", "minority")

Count = Annotated[int, at_least(1)]
Several = Annotated[int, at_least(2)]
Positive = Annotated[float, POSITIVE]


@dataclass(frozen=True)
class Config(Bounded):
    """Subsets of pools with clusters 3:1: their shares, and the errors of either group.

    A quarter, and 32 demonstrations at least, leave the shares of a subset many values.
    """

    d: Annotated[int, between(1, 64)] = 8
    m: Several = 512
    minority: Annotated[float, between(0.01, 0.5)] = 0.25  # share of the second cluster
    separation: Annotated[float, between(0, 10)] = 2.0  # distance of each cluster's centre from 0
    noise_std: Positive = 0.5  # of a task's labels; classes have none
    # Demonstrations that are chosen; A3's table 6 has 128.
    sizes: Annotated[tuple[int, ...], between(1, "m")] = (32, 64, 128)
    depth: Count = 16  # of the stack that answers: steps of gradient descent
    step: Positive = 0.15  # size of a step of that descent
    epochs: Count = 10  # of the proxies' training
    batch: Count = 64  # examples of the pool in a training step
    learning_rate: Positive = 0.1  # of the linear proxies
    saves: Count = 10  # checkpoints of each training, at which gradients are matched
    random_draws: Several = 20  # random subsets, to compare with
    queries: Count = 128  # of each group
    runs: Several = 24
    seed: Seed = 1


TIERS = {
    "smoke": Config(d=2, m=40, sizes=(12,), depth=2, saves=2, random_draws=4, queries=8, runs=2),
    "laptop": Config(),
    "paper": Config(d=16, m=2048, sizes=(32, 64, 128, 256), queries=512, runs=64),
}


def shares(config) -> tuple[float, float]:
    """The groups' shares of a pool."""
    return 1 - config.minority, config.minority
