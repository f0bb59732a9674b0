"""The sizes of `matching_is_exact`, and the softmax models that it trains."""

from dataclasses import dataclass

from experiments.models.named import Named
from experiments.models.specs import dense_spec

SQUARES = ("free", "matched")  # the mean of y², of which no gradient knows
MATCHING = ("plain", "whitened", "scaled")  # gradients that choose a subset


@dataclass(frozen=True)
class Subsets:
    """More pools, after whose subsets descent alone answers."""

    runs: int = 48
    seed: int = 11


@dataclass(frozen=True)
class Config:
    """Twins of a pool, matched at C checkpoints and otherwise unlike it, before many models.

    A gap is the root mean square of ŷ(twin) - ŷ(pool) over queries, over that of ŷ(pool).
    """

    d: int = 5
    m: int = 128  # the pool
    n: int = 24  # a twin, and a subset chosen from the pool
    noise_std: float = 0.5
    # Ends of the covariates' variances.
    spectrum: tuple[float, ...] = (0.4, 2.0)
    most: int = 9  # checkpoints, at most
    batch: int = 16  # of the linear proxy, trained for 10 epochs
    rate: float = 0.1  # learning rate of the linear proxy
    depths: tuple[int, ...] = (1, 2, 4, 8)  # of constructed descent
    step: float = 0.2  # size of a step of constructed descent
    softmax_depth: int = 2  # layers of the trained softmax stacks
    heads: int = 2
    softmax_steps: int = 800  # training steps of softmax stacks
    softmax_batch: int = 64  # prompts in each of these steps
    learning_rate: float = 0.01
    queries: int = 64  # after each prompt
    random_draws: int = 20  # random subsets of the pool, to compare with
    runs: int = 48
    # How many of the runs have softmax weights of their own.
    trained: int = 12
    seed: int = 1
    subsets: Subsets = Subsets()  # pools from which subsets are chosen for descent

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
