"""The rules, the targets and the sizes of `matching_transfer`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.matching.configs import AtLeastTwo, Count, Positive, Trained, check_names
from experiments.models.named import choose_pairs
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import Seed, between, divides

SMALL = "one layer"  # the model on which a prefix is trained; the linear proxy's first step
TRAINED = ("linear attention", "softmax attention", "transformer")
STACK = TRAINED[0]  # a proxy too: of another architecture than the two that follow
# Gradients of the linear proxy, of a prefix of one layer, and of one of the trained stack; then the
# linear proxy mismatched, a diverse choice that sees no gradient, and after these random subsets.
GRADIENTS = ("linear proxy", "prefix", "stack prefix")
RULES = (*GRADIENTS, "mismatched", "determinantal")
# What is trained on a subset alone: w of w·x, and a prefix of the target itself.
TUNED = ("linear model", "own prefix")
BAYES = "Bayes rule"  # which reads the subset


@dataclass(frozen=True)
class Config(Trained):
    """Subsets chosen on small models, used on larger ones, and models fine-tuned on subsets."""

    noise_std: Positive = 0.5  # of the labels, in training and in the pool
    m: Annotated[int, between(2, 10_000)] = 256  # the pool
    pools: Count = 2  # of each run
    tuned_pools: Count = 1  # on whose subsets models are fine-tuned
    queries: Count = 32  # of each pool
    random_subsets: AtLeastTwo = 24  # of each pool, to compare with
    # Checkpoints of the linear proxy's descent and of the prefix's training.
    checkpoints: Annotated[int, divides("prefix_steps")] = 10
    prefix_length: Count = 4  # tokens whose gradients a prefix has
    prefix_rate: Positive = 0.03  # learning rate of the prefixes
    prefix_steps: int = 200  # training steps of the prefixes
    tuned_steps: Count = 100  # of what is trained on a subset alone
    # Layers of the constructed stacks.
    descents: Annotated[tuple[int, ...], between(1, 64)] = (4, 16)
    runs: AtLeastTwo = 9  # as many as the seeds of the models
    seed: Seed = 21

    def __post_init__(self):
        super().__post_init__()
        check_names(self, TRAINED)
        checks.between(self, "m", self.n + 1, 10_000)
        checks.between(self, "tuned_pools", 1, self.pools)


TIERS = {
    "smoke": Config(
        choose_pairs(TRAINED, small=True),
        m=12,
        pools=1,
        queries=2,
        random_subsets=3,
        checkpoints=3,
        prefix_length=2,
        prefix_steps=6,
        tuned_steps=3,
        descents=(2,),
        runs=2,
    ),
    "laptop": Config(choose_pairs(TRAINED)),
    # The same models, whose seeds are the runs: more pools for each.
    "paper": Config(choose_pairs(TRAINED), pools=8, tuned_pools=4, seed=23),
}


def targets(config) -> list[str]:
    """The models that are taught by the chosen subsets, the smallest first."""
    return [
        SMALL,
        *(f"descent, {depth} steps" for depth in config.descents),
        *(name for name, _ in config.models),
    ]
