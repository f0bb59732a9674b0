"""The sizes of `matching_is_exact`, and the softmax models that it trains."""

from dataclasses import dataclass
from typing import Annotated

from experiments.matching.configs import AtLeastTwo, Count, Positive
from experiments.models.named import Named
from experiments.models.specs import dense_spec
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, between

SQUARES = ("free", "matched")  # the mean of y², of which no gradient knows
MATCHING = ("plain", "whitened", "scaled")  # gradients that choose a subset


@dataclass(frozen=True)
class Subsets(Bounded):
    """More pools, after whose subsets descent alone answers."""

    runs: AtLeastTwo = 48
    seed: Seed = 11


@dataclass(frozen=True)
class Config(Bounded):
    """Twins of a pool, matched at C checkpoints and otherwise unlike it, before many models.

    A gap is the root mean square of ŷ(twin) - ŷ(pool) over queries, over that of ŷ(pool).
    """

    d: Annotated[int, between(2, 16)] = 5
    m: AtLeastTwo = 128  # the pool
    n: int = 24  # a twin, and a subset chosen from the pool
    noise_std: Positive = 0.5
    # Ends of the covariates' variances.
    spectrum: Annotated[tuple[float, ...], POSITIVE] = (0.4, 2.0)
    most: int = 9  # checkpoints, at most
    batch: Count = 16  # of the linear proxy, trained for 10 epochs
    rate: Positive = 0.1  # learning rate of the linear proxy
    depths: Annotated[tuple[int, ...], between(1, 32)] = (1, 2, 4, 8)  # of constructed descent
    step: Positive = 0.2  # size of a step of constructed descent
    softmax_depth: Count = 2  # layers of the trained softmax stacks
    heads: Count = 2
    softmax_steps: Count = 800  # training steps of softmax stacks
    softmax_batch: Count = 64  # prompts in each of these steps
    learning_rate: Positive = 0.01
    queries: Count = 64  # after each prompt
    random_draws: Count = 20  # random subsets of the pool, to compare with
    runs: AtLeastTwo = 48
    # How many of the runs have softmax weights of their own.
    trained: Annotated[int, between(1, "runs")] = 12
    seed: Seed = 1
    subsets: Subsets = Subsets()  # pools from which subsets are chosen for descent

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "n", self.d + 1, self.m)
        checks.between(self, "most", self.d + 1, 32)

    @property
    def models(self) -> Named:
        training = dict(steps=self.softmax_steps, batch=self.softmax_batch, seed=self.seed)
        training |= dict(learning_rate=self.learning_rate, seeds=self.trained)
        sizes, heads = (self.d, self.n, self.softmax_depth), dict(heads=self.heads)
        heads |= dict(key_width=self.d + 1, training=training)
        return (("brief softmax", dense_spec("softmax", *sizes, **heads)),)


TIERS = {
    "smoke": Config(
        d=2,
        m=12,
        n=6,
        most=3,
        depths=(1, 2),
        softmax_depth=1,
        heads=1,
        softmax_steps=2,
        softmax_batch=2,
        queries=4,
        runs=2,
        trained=1,
        subsets=Subsets(runs=2),
    ),
    "laptop": Config(),
    # Fewer pools from seeds 11 to 13 left rows undecided each time.
    "paper": Config(runs=192, trained=192, seed=13, subsets=Subsets(runs=480, seed=14)),
}
