"""The sizes of `demonstration_place`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.descent.specs import SOFTMAX, spec_of
from experiments.models.named import Named, named
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least

CAUSAL = "causal attention"  # the name of a model, as SOFTMAX is
TRAINED, CONTROL, UNTRAINED, DESCENT = KINDS = (
    "trained, causal",
    "trained, no mask",
    "untrained, causal",
    "descent, causal",
)


def pair(tier: str) -> Named:
    """Softmax attention alone, with a causal mask and without one."""
    return named(tier, (CAUSAL, SOFTMAX))


MODELS = pair("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """Prompts in which one demonstration answers the query, asked with it in every place; and
    prompts as in training, whose labels are moved.

    The covariates of the relevant demonstration are the query's; its label is exact, or as noisy as
    those in training. The others are as in training, and keep their order.
    """

    models: Named = MODELS  # trained models, by name
    prompts: Annotated[int, at_least(4)] = 1000  # of each run, the same for all places
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        causal, free = (spec_of(self, name) for name in (CAUSAL, SOFTMAX))
        if (causal.architecture.keys, free.architecture.keys) != ("causal", "demonstrations"):
            raise ValueError("choose a model with a causal mask and another without")
        if causal.task != free.task:
            raise ValueError(f"{CAUSAL}, {SOFTMAX}: choose models of one task")


TIERS = {
    "smoke": Config(pair("smoke"), prompts=8),
    "laptop": Config(),
    "paper": Config(pair("paper"), prompts=2000),
}
