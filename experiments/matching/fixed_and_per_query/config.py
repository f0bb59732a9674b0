"""The pools, shares, learners and sizes of `fixed_and_per_query`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.matching.configs import AtLeastTwo, Count, Positive, Proxies, check_names
from experiments.models.named import Named, choose_pairs
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least, between

EXACT, TRAINED = ("descent", "ridge"), ("linear attention", "softmax attention")
LEARNERS = (*EXACT, *TRAINED)  # who answers after the chosen demonstrations
MIXED = (*EXACT, TRAINED[1])  # linear attention explodes on prompts chosen for a query
MATCHED = ("matching", "matching, whitened")
RULES = (*MATCHED, "random")  # by which the fixed ones are chosen
KINDS = {"one task": 0.0, "related tasks": 0.5, "own tasks": 1.0}  # how far the tasks are apart
CLEAN, HEAVY = "clean", "heavy covariates"
OUTLIERS = ("few flipped", "many flipped", HEAVY, "heavy noise")  # noisy pools that have them
NOISY_KINDS, NOISY_RULES = (CLEAN, *OUTLIERS), (*MATCHED, "mismatching", "random")

MODELS = choose_pairs(TRAINED)


@dataclass(frozen=True)
class Noisy(Bounded):
    """Matched subsets of pools in which part of the labels or of the covariates misleads.

    Errors are on queries with Gaussian covariates and targets without noise.
    """

    m: AtLeastTwo = 256  # the pool
    # Demonstrations that are chosen.
    sizes: Annotated[tuple[int, ...], at_least(2)] = (20, 40, 80)
    model_size: int = 20  # of which the trained models get so many: those of their training
    # Probability of a label's wrong sign: few, many.
    flips: Annotated[tuple[float, float], between(0, 0.5)] = (0.1, 0.3)
    # Degrees of freedom of Student's t where tails are heavy, variance as before.
    tail: Annotated[float, at_least(2.1)] = 3.0
    # Share of a heavy-tailed pool that counts as its outliers.
    outliers: Annotated[float, between(0, 0.5)] = 0.05
    random_draws: Count = 4  # random subsets, to compare with
    queries: Count = 24  # of each pool
    pools: Count = 24  # of each run and kind
    seed: Seed = 2

    def __post_init__(self):
        super().__post_init__()
        checks.each_between(self, "sizes", 2, self.m - 1)
        checks.one_of(self, "model_size", self.sizes)
        checks.between(self, "outliers", 1 / self.m, 0.5)


@dataclass(frozen=True)
class Config(Proxies):
    """n demonstrations, some of them chosen once, the rest the most similar to each query.

    Pools have clusters, each with weights √(1 - a) w_0 + √a w_c: one task at a = 0, and tasks that
    have nothing in common at a = 1. Both pools and queries keep E|x|² = d, as in training.
    """

    n: Annotated[int, between(2, "m")] = 20  # demonstrations of a prompt
    # How many of them are the same for all queries.
    fixed: Annotated[tuple[int, ...], between(0, "n")] = (0, 5, 10, 15, 20)
    m: AtLeastTwo = 256  # the pool
    clusters: Annotated[int, between(2, "m")] = 4  # of a pool
    separation: Annotated[float, at_least(0)] = 2.0  # distance of each cluster's centre from 0
    noise_std: Positive = 0.5  # of the pool's labels
    random_draws: Count = 2  # random fixed parts, to compare with
    queries: Count = 6  # of each cluster
    pools: Count = 32  # of each run and kind
    models: Named = MODELS  # trained attention that answers too
    runs: AtLeastTwo = 9  # as many as the seeds of the models
    seed: Seed = 4
    noisy: Noisy = Noisy()  # pools in which labels or covariates mislead

    def __post_init__(self):
        super().__post_init__()
        if list(self.fixed) != sorted({*self.fixed, 0, self.n}) or len(self.fixed) < 3:
            raise ValueError(
                f"fixed = {self.fixed!r}: increasing, from 0 to n = {self.n}, with more"
            )
        if self.n // 2 not in self.fixed:
            raise ValueError(f"fixed = {self.fixed!r}: n // 2 = {self.n // 2} is among them")
        checks.between(self, "separation", 0, self.d**0.5)
        check_names(self, TRAINED)


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        fixed=(0, 2, 4),
        m=24,
        clusters=2,
        separation=1.0,
        depth=2,
        saves=2,
        random_draws=2,
        queries=2,
        pools=1,
        models=choose_pairs(TRAINED, small=True),
        runs=2,
        noisy=Noisy(m=40, sizes=(4, 8), model_size=4, random_draws=2, queries=2, pools=4),
    ),
    "laptop": Config(),
}
