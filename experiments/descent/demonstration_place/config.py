"""The sizes and the criteria of `demonstration_place`."""

from dataclasses import dataclass

from experiments.descent.demonstration_place.statements import CAUSAL
from experiments.descent.demonstration_place.statements import statements as statements
from experiments.models.named import MODELS
from experiments.models.specs import Spec
from lsa_lab.harness import checks

FREE = "softmax attention"  # the name of a model, as CAUSAL is
TRAINED, CONTROL, UNTRAINED, DESCENT = KINDS = (
    "trained, causal",
    "trained, no mask",
    "untrained, causal",
    "descent, causal",
)


@dataclass(frozen=True)
class Config:
    """Prompts in which one demonstration answers the query, asked with it in every place; and
    prompts as in training, whose labels are moved.

    The covariates of the relevant demonstration are the query's; its label is exact, or as noisy as
    those in training. The others are as in training, and keep their order.
    """

    causal: Spec = MODELS["laptop"][CAUSAL]  # softmax attention alone, with a causal mask
    free: Spec = MODELS["laptop"][FREE]  # the same without one
    prompts: int = 1000  # of each run, the same for all places
    seed: int = 1
    # Criteria, on errors and on influences as shares of their mean over places.
    more: float = 0.05  # what is better, or of more influence, by this share at least counts more
    flat: float = 0.02  # a difference within this is none
    helps: float = 0.9  # error over that without the relevant demonstration: at most this is help
    near: float = 1.5  # risk over least squares' on prompts as in training: at most this is trained

    def __post_init__(self):
        checks.kinds(self)
        if (self.causal.architecture.keys, self.free.architecture.keys) != (
            "causal",
            "demonstrations",
        ):
            raise ValueError("choose a model with a causal mask and another without")
        if self.causal.task != self.free.task:
            raise ValueError("causal, free: choose models of one task")
        checks.between(self, "prompts", 4, None)
        for name in ("more", "flat", "helps", "near"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(MODELS["smoke"][CAUSAL], MODELS["smoke"][FREE], prompts=8),
    "laptop": Config(),
    "paper": Config(MODELS["paper"][CAUSAL], MODELS["paper"][FREE], prompts=2000),
    "gpu": Config(MODELS["gpu"][CAUSAL], MODELS["gpu"][FREE], prompts=10_000),
}
