"""The sizes of `update_sizes`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.descent.specs import linear, stack_and_softmax
from experiments.models.named import Named
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

SIZES = (  # of a layer of softmax attention, at the query
    "update",  # |ΔW| in the feature space of the kernel, 1/Z in it
    "paper",  # |ΔW| without its normaliser Z, as A2's linear layers have none
    "written",  # |ΔW φ|, what it adds to the query's token
    "change",  # the change of what is written when W_V is clipped
    "relative change",
)

MODELS = stack_and_softmax("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """Updates of trained layers by the number of demonstrations that they read."""

    models: Named = MODELS  # trained models, by name
    # Shots in the test over those in training.
    factors: Annotated[tuple[float, ...], POSITIVE] = (0.25, 0.5, 1.0, 2.0, 4.0)
    rate: Annotated[float, between(0.0, 0.999)] = 0.5  # at which W_V of one layer is clipped
    prompts: Annotated[int, at_least(2)] = 512  # of each run, its own
    seed: Seed = 2

    def __post_init__(self):
        super().__post_init__()
        if list(self.factors) != sorted({*self.factors, 0.5, 1.0, 2.0}):
            raise ValueError(
                f"factors = {self.factors!r}: choose ones that grow, with 0.5, 1 and 2 among them"
            )


TIERS = {
    "smoke": Config(
        stack_and_softmax("smoke", linear(6, 3, batch=4, d=2, n=4, depth=2)),
        factors=(0.5, 1.0, 2.0),
        prompts=8,
    ),
    "laptop": Config(),
    "paper": Config(stack_and_softmax("laptop", linear(20_000, 16, batch=512)), prompts=4096),
}
