"""The sizes of `clipping_curves`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.clipped_models import Rates, spec_of, transformer
from experiments.models.named import Named
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, Bounded, Seed, at_least, between

MODELS = transformer("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """The mean risk of trained transformers after one part of one layer is clipped.

    Shots 4 and 10 are A2's. It also has 0, at which attention over demonstrations reads nothing.
    Its rates 0.99 and 0.995 keep as little of a matrix of rank 32 as 0.95: one direction.
    """

    models: Named = MODELS  # trained models, by name
    # Beside the n of training, some of them fewer, some more.
    shots: Annotated[tuple[int, ...], at_least(1), INCREASING] = (4, 10, 40)
    rates: Annotated[Rates, INCREASING] = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    prompts: Annotated[int, at_least(2)] = 500  # of each run, the same for all edits
    # A model does the task where its risk is at most this share of that of predicting 0.
    able: Annotated[float, between(0.0, 1.0)] = 0.5
    high: float = 0.75  # from this rate on clipping is drastic
    seed: Seed = 5

    def __post_init__(self):
        super().__post_init__()
        n, few, many = max(spec_of(self).task.lengths), min(self.shots), max(self.shots)
        if n in self.shots or not few < n < many:
            nearest = tuple(sorted({*self.shots, max(1, n // 2), 2 * n} - {n}))
            raise ValueError(
                f"shots = {self.shots!r}: choose numbers below n = {n} and above; nearest {nearest}"
            )
        checks.between(self, "high", min(self.rates), max(self.rates))


TIERS = {
    "smoke": Config(transformer("smoke"), shots=(2, 8), rates=(0.5, 0.75), prompts=16),
    "laptop": Config(),
    "paper": Config(transformer("paper"), seed=6),
}
