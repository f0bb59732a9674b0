"""The sizes and the statements of `relevance_and_novelty`."""

from dataclasses import dataclass

from experiments.flow.relevance_and_novelty.statements import statements as statements
from experiments.models.named import Named, named
from lsa_lab.harness import checks

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
class Config:
    """The last demonstration of a prompt, and what it takes off the error of the others' answer.

    Trained models read the prompt with it and without it, and so does the Bayes rule.
    """

    models: Named  # trained models, by name
    prompts: int = 4000  # of each run
    runs: int = 9  # each with prompts of its own, and of trained models with a seed of its own
    classes: int = 4  # of relevance, and of novelty: quantiles
    seed: int = 0
    # Criteria.
    rises: float = 0.9  # a rank correlation over classes of at least this is a rise
    predicts: float = 0.3  # over single demonstrations of at least this, a prediction
    alike: float = 0.9  # a correlation of two maps of at least this
    trained: float = 1.5  # the excess risk over that of the Bayes rule, at most

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "prompts", 100, None)
        checks.between(self, "runs", 2, min(model.training.seeds for _, model in self.models))
        checks.between(self, "classes", 2, 8)
        for name in ("rises", "predicts", "alike"):
            checks.between(self, name, 0.0, 1.0)
        checks.positive(self, "trained")
        checks.seed(self, "seed")
        if len({model.task for _, model in self.models}) > 1:
            raise ValueError("models: choose those of one task, which all of them answer")


TIERS = {
    "smoke": Config(named("smoke", NAMES[:2]), prompts=200, runs=2, classes=2),
    "laptop": Config(named("laptop", NAMES)),
    "paper": Config(named("paper", NAMES), runs=36, seed=10),
    "gpu": Config(named("laptop", NAMES), prompts=100_000, classes=6),
}
