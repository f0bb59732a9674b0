"""The pools, rules and sizes of `coverage`."""

from dataclasses import dataclass

from experiments.matching.configs import Proxies

KINDS = {  # of the labels: PoolTask's own words
    "one task": {},
    "a task each": {"num_weights": "cluster"},
    "a class each": {"labels": "cluster", "noise_std": 0.0},
}
CLASSES = "a class each"  # labels that the proxy learns by the logistic loss, as ±1
ORDER = (CLASSES, "one task", "a task each")  # the headline's kind first
# Gradients of w·x, of w·x + c, and of that without those at w = 0, c = 0, before training.
PROXIES = ("matching", "matching, intercept", "intercept, later")
RULES = (*PROXIES, "random", "stratified")
GROUPS = ("majority", "minority")
# Of several classes: gradients of W x and of W x + c by their logistic loss; random subsets.
SEVERAL_RULES = (*PROXIES[:2], "random")


@dataclass(frozen=True)
class Pools(Proxies):
    """Pools with a cluster for each group or class."""

    m: int = 512
    separation: float = 2.0  # distance of each cluster's centre from 0
    random_draws: int = 20  # random subsets, to compare with
    queries: int = 128  # of each group or class
    runs: int = 24
    seed: int = 1


@dataclass(frozen=True)
class Several(Pools):
    """Subsets of pools of several classes: their shares, and whom they teach.

    A3's tasks have 3 to 5 classes (MNLI, HellaSwag, SST-5, CommonsenseQA).
    """

    m: int = 1024
    n: int = 128  # demonstrations that are chosen: A3's table 6
    classes: tuple[int, ...] = (3, 5)  # numbers of classes of a pool
    # Decline of the shares, in a line from 1 + this to 1 - this times the mean.
    decline: float = 0.5
    tests: int = 1000  # labels of a test set, to whose shares A3's table 6 compares
    queries: int = 200
    runs: int = 36
    seed: int = 4


@dataclass(frozen=True)
class Config(Pools):
    """Subsets of pools with clusters 3:1: their shares, and the errors of either group.

    A quarter, and 32 demonstrations at least, leave the shares of a subset many values.
    """

    minority: float = 0.25  # share of the second cluster
    noise_std: float = 0.5  # of a task's labels; classes have none
    # Demonstrations that are chosen; A3's table 6 has 128.
    sizes: tuple[int, ...] = (32, 64, 128)
    several: Several = Several()  # pools of several classes


SMALL = dict(d=2, m=40, depth=2, saves=2, random_draws=4, queries=8, runs=2)
MANY = dict(classes=(2, 3, 4, 5, 6), random_draws=50, queries=1000, runs=96, seed=5)
TIERS = {
    "smoke": Config(**SMALL, sizes=(12,), several=Several(**SMALL, n=12)),
    "laptop": Config(),
    "paper": Config(
        d=16,
        m=2048,
        sizes=(32, 64, 128, 256),
        queries=512,
        runs=64,
        several=Several(m=2048, **MANY),
    ),
}


def shares(config) -> tuple[float, float]:
    """The groups' shares of a pool."""
    return 1 - config.minority, config.minority


def class_shares(config, classes: int) -> tuple[float, ...]:
    """The classes' shares, declining in a line."""
    steps = [1 + config.decline * (1 - 2 * k / (classes - 1)) for k in range(classes)]
    return tuple(step / classes for step in steps)
