"""The sizes of `relevance_and_novelty`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named, choose_pairs
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least, between

BAYES, UNTRAINED = "Bayes rule", "untrained"
# What is meant by relevance and by novelty; all by the Bayes rule and the other demonstrations.
READINGS = {
    "similarity": ("|cos(x, x_query)|", "surprise |y - ŷ(x)|"),
    "flow": ("flow |∂ŷ/∂y|", "surprise |y - ŷ(x)|"),
    "no label": ("posterior correlation", "posterior variance"),
}
SINGLES = ("distance", "similarity", "flow", "surprise", "variance")  # predictors of one factor
NAMES = ("linear attention", "softmax attention", "transformer")


@dataclass(frozen=True)
class Config(Bounded):
    """The last demonstration of a prompt, and what it takes off the error of the others' answer.

    Trained models read the prompt with it and without it, and so does the Bayes rule.
    """

    models: Named  # trained models, by name
    prompts: Annotated[int, at_least(100)] = 4000  # of each run
    # Each with prompts of its own, and of trained models with a seed of its own.
    runs: Annotated[int, at_least(2)] = 9
    classes: Annotated[int, between(2, 8)] = 4  # of relevance, and of novelty: quantiles
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "runs", 2, min(model.training.seeds for _, model in self.models))
        if len({model.task for _, model in self.models}) > 1:
            raise ValueError("models: choose those of one task, which all of them answer")


TIERS = {
    "smoke": Config(choose_pairs(NAMES[:2], small=True), prompts=200, runs=2, classes=2),
    "laptop": Config(choose_pairs(NAMES)),
}
