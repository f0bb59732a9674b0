"""The sizes of `label_clipping`."""

from dataclasses import dataclass

from experiments.clipping.clipped_models import Rates
from experiments.models.named import Named, choose_pairs

MODELS = choose_pairs(("classes",))  # softmax, a norm and an MLP


@dataclass(frozen=True)
class Config:
    """The accuracy of trained transformers on two classes after one part of one layer is clipped.

    Demonstrations are [x, ±1], the sign of a linear rule with noise; (1 + ŷ) / 2 is read as the
    probability of class 1, for the squared error is its Brier score, and a label is the likelier.
    """

    models: Named = MODELS  # one, trained on classes
    rates: Rates = (0.125, 0.25, 0.5, 0.75, 0.875, 0.9375)
    prompts: int = 1000  # of each run, the same for all edits
    ends: int = 2  # layers that are called shallow, and deep
    high: float = 0.75  # from this rate on clipping is drastic
    sweeps: int = 250  # of Gibbs sampling, for the Bayes rule
    seed: int = 2


TIERS = {
    "smoke": Config(
        choose_pairs(("classes",), small=True), rates=(0.5, 0.75), prompts=32, ends=1, sweeps=20
    ),
    "laptop": Config(),
}
