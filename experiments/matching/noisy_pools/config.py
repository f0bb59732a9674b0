"""The pools, rules, learners and sizes of `noisy_pools`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named, named
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

CLEAN, HEAVY = "clean", "heavy covariates"
# What is wrong with a pool, and which of its demonstrations are its outliers.
KINDS = (CLEAN, "few flipped", "many flipped", HEAVY, "heavy noise")
OUTLIERS = {
    "few flipped": "flipped labels",
    "many flipped": "flipped labels",
    HEAVY: "longest covariates",
    "heavy noise": "largest noise",
}
RULES = ("matching", "matching, whitened", "mismatching", "random")
TRAINED = ("linear attention", "softmax attention")

Count = Annotated[int, at_least(1)]
Positive = Annotated[float, POSITIVE]


@dataclass(frozen=True)
class Config(Bounded):
    """Matched subsets of pools in which part of the labels or of the covariates misleads.

    Errors are on queries with Gaussian covariates and targets without noise.
    """

    d: Annotated[int, between(1, 64)] = 8
    m: Annotated[int, at_least(2)] = 256  # the pool
    # Demonstrations that are chosen.
    sizes: Annotated[tuple[int, ...], at_least(2)] = (20, 40, 80)
    model_size: int = 20  # of which the trained models get so many: those of their training
    noise_std: Positive = 0.5  # of the pool's labels
    # Probability of a label's wrong sign: few, many.
    flips: Annotated[tuple[float, float], between(0, 0.5)] = (0.1, 0.3)
    # Degrees of freedom of Student's t where tails are heavy, variance as before.
    tail: Annotated[float, at_least(2.1)] = 3.0
    # Share of a heavy-tailed pool that counts as its outliers.
    outliers: Annotated[float, between(0, 0.5)] = 0.05
    depth: Count = 16  # steps of the descent that answers, which a linear stack computes
    step: Positive = 0.15  # size of each
    epochs: Count = 10  # of the linear proxy's training, whose gradients are matched
    batch: Count = 64  # examples of the pool in a step of it
    learning_rate: Positive = 0.1  # of the proxy
    saves: Count = 10  # checkpoints of its training
    random_draws: Count = 4  # random subsets, to compare with
    queries: Count = 24  # of each pool
    pools: Count = 24  # of each run and kind
    models: Named = ()  # trained attention that answers too
    runs: Annotated[int, at_least(2)] = 9  # as many as the seeds of the models
    seed: Seed = 2

    def __post_init__(self):
        super().__post_init__()
        checks.each_between(self, "sizes", 2, self.m - 1)
        checks.one_of(self, "model_size", self.sizes)
        checks.between(self, "outliers", 1 / self.m, 0.5)


TIERS = {
    "smoke": Config(
        d=2,
        m=40,
        sizes=(4, 8),
        model_size=4,
        depth=2,
        saves=2,
        random_draws=2,
        queries=2,
        pools=4,
        models=named("smoke", TRAINED),
        runs=2,
    ),
    "laptop": Config(models=named("laptop", TRAINED)),
    "paper": Config(models=named("paper", TRAINED), pools=32, runs=36, seed=12),
}
