"""The sizes and the criteria of `matching_transfer`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.matching.matching_transfer.statements import TRAINED
from experiments.matching.matching_transfer.statements import statements as statements
from experiments.models.named import Named, named
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    """Subsets chosen on small models, used on larger ones, and the reverse."""

    models: Named  # the trained targets
    d: int = 8
    n: int = 20  # demonstrations in training, and the size of a subset
    noise_std: float = 0.5  # of the labels, in training and in the pool
    m: int = 256  # the pool
    pools: int = 4  # of each run
    queries: int = 32  # of each pool
    random_subsets: int = 24  # of each pool, to compare with
    checkpoints: int = 10  # of the linear proxy's descent and of the prefix's training
    prefix_length: int = 4  # tokens whose gradients a prefix has
    prefix_rate: float = 0.03  # learning rate of the prefixes
    prefix_steps: int = 200  # training steps of the prefixes
    descents: tuple[int, ...] = (4, 16)  # layers of the constructed stacks
    runs: int = 9  # as many as the seeds of the models
    seed: int = 2
    # Criteria: error of a chosen subset over the median random one's, and Spearman's correlation;
    # medians over pools, then over runs: linear stacks explode on rare subsets.
    gain: float = 1.0  # below it on every target the choice transfers
    no_loss: float = 1.1  # the prefix's over the proxy's: at most this is no worse
    rank: float = 0.5  # of subsets' errors, between the small model and every target

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 32)
        checks.between(self, "m", 2, 10_000)
        checks.between(self, "n", 2, self.m - 1)
        for name in ("pools", "queries", "prefix_length"):
            checks.between(self, name, 1, None)
        checks.divides(self, "checkpoints", "prefix_steps")
        checks.each_between(self, "descents", 1, 64)
        checks.between(self, "random_subsets", 2, None)
        for _, spec in self.models:
            if (spec.task.d, *spec.task.lengths) != (self.d, self.n):
                raise ValueError(f"models are trained on d = {self.d} and n = {self.n}")
            checks.between(self, "runs", 2, spec.training.seeds)
        checks.between(self, "runs", 2, None)
        for name in ("prefix_rate", "gain", "no_loss"):
            checks.positive(self, name)
        checks.positive(self, "noise_std")
        checks.between(self, "rank", -1, 1)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        named("smoke", TRAINED[:1]),
        d=2,
        n=4,
        m=12,
        pools=1,
        queries=2,
        random_subsets=3,
        checkpoints=3,
        prefix_length=2,
        prefix_steps=6,
        descents=(2,),
        runs=2,
    ),
    "laptop": Config(named("laptop", TRAINED)),
    "paper": Config(named("paper", TRAINED), pools=8, runs=36, seed=12),
    "gpu": Config(
        named("gpu", TRAINED), d=16, n=40, m=2048, pools=16, queries=128, random_subsets=200
    ),
}
