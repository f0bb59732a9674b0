"""The rules, the targets and the sizes of `matching_transfer`."""

from dataclasses import dataclass

from experiments.matching.configs import Trained
from experiments.models.named import choose_pairs

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

    noise_std: float = 0.5  # of the labels, in training and in the pool
    m: int = 256  # the pool
    pools: int = 2  # of each run
    tuned_pools: int = 1  # on whose subsets models are fine-tuned
    queries: int = 32  # of each pool
    random_subsets: int = 24  # of each pool, to compare with
    # Checkpoints of the linear proxy's descent and of the prefix's training.
    checkpoints: int = 10
    prefix_length: int = 4  # tokens whose gradients a prefix has
    prefix_rate: float = 0.03  # learning rate of the prefixes
    prefix_steps: int = 200  # training steps of the prefixes
    tuned_steps: int = 100  # of what is trained on a subset alone
    # Layers of the constructed stacks.
    descents: tuple[int, ...] = (4, 16)
    runs: int = 9  # as many as the seeds of the models
    seed: int = 21


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
