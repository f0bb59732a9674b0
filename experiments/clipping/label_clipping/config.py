"""The sizes of `label_clipping`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.clipped_models import Rates, spec_of
from experiments.models.named import Named, choose_pairs
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, Bounded, Seed, at_least

MODELS = choose_pairs(("classes",))  # softmax, a norm and an MLP


@dataclass(frozen=True)
class Config(Bounded):
    """The accuracy of trained transformers on two classes after one part of one layer is clipped.

    Demonstrations are [x, ±1], the sign of a linear rule with noise; (1 + ŷ) / 2 is read as the
    probability of class 1, for the squared error is its Brier score, and a label is the likelier.
    """

    models: Named = MODELS  # one, trained on classes
    rates: Annotated[Rates, INCREASING] = (0.125, 0.25, 0.5, 0.75, 0.875, 0.9375)
    prompts: Annotated[int, at_least(8)] = 1000  # of each run, the same for all edits
    ends: Annotated[int, at_least(1)] = 2  # layers that are called shallow, and deep
    high: float = 0.75  # from this rate on clipping is drastic
    sweeps: Annotated[int, at_least(10)] = 250  # of Gibbs sampling, for the Bayes rule
    seed: Seed = 2

    def __post_init__(self):
        super().__post_init__()
        spec = spec_of(self)
        if spec.task.labels != "signs":
            raise ValueError("models: choose one that is trained on classes, such as 'classes'")
        checks.between(self, "ends", 1, spec.architecture.depth // 2)
        checks.between(self, "high", min(self.rates), max(self.rates))


TIERS = {
    "smoke": Config(
        choose_pairs(("classes",), small=True), rates=(0.5, 0.75), prompts=32, ends=1, sweeps=20
    ),
    "laptop": Config(),
}
