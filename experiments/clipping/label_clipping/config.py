"""The sizes and the criteria of `label_clipping`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.clipping.label_clipping.statements import statements as statements
from experiments.models.named import MODELS
from experiments.models.specs import Spec
from lsa_lab.harness import checks

DROPPED = 1.0  # the rate that stands for rank 0


@dataclass(frozen=True)
class Config:
    """The accuracy of trained transformers on two classes after one part of one layer is clipped.

    Demonstrations are [x, ±1], the sign of a linear rule with noise; (1 + ŷ) / 2 is read as the
    probability of class 1, for the squared error is its Brier score, and a label is the likelier.
    """

    model: Spec = MODELS["laptop"]["classes"]  # softmax, a norm and an MLP
    rates: tuple[float, ...] = (0.125, 0.25, 0.5, 0.75, 0.875, 0.9375)  # of clipping
    prompts: int = 1000  # of each run, the same for all edits
    ends: int = 2  # layers that are called shallow, and deep
    high: float = 0.75  # from this rate on clipping is drastic
    sweeps: int = 250  # of Gibbs sampling, for the Bayes rule
    seed: int = 2
    # Criteria, on accuracies.
    flat: float = 0.02  # a fall or a difference below this is not much
    guess: float = 0.05  # as near to .5 as this is guessing
    gain: float = 0.01  # at least this is an improvement
    near: float = 0.02  # at most this below the Bayes rule: well trained

    def __post_init__(self):
        checks.kinds(self)
        if self.model.task.labels != "signs":
            raise ValueError("model: choose one that is trained on classes, such as 'classes'")
        checks.each_between(self, "rates", 0.0, 0.999)
        if list(self.rates) != sorted({*self.rates}):
            raise ValueError(
                f"rates = {self.rates!r}: choose increasing rates; nearest "
                f"{tuple(sorted({*self.rates}))}"
            )
        checks.between(self, "prompts", 8, None)
        checks.between(self, "ends", 1, self.model.architecture.depth // 2)
        checks.between(self, "high", min(self.rates), max(self.rates))
        checks.between(self, "sweeps", 10, None)
        for name in ("flat", "guess", "gain", "near"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(MODELS["smoke"]["classes"], rates=(0.5, 0.75), prompts=32, ends=1, sweeps=20),
    "laptop": Config(),
    "gpu": Config(MODELS["gpu"]["classes"], prompts=10_000, sweeps=2000),
}
