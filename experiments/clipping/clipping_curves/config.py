"""The sizes of `clipping_curves`."""

from dataclasses import dataclass

from experiments.clipping.clipped_models import Rates, transformer
from experiments.models.named import Named

MODELS = transformer("laptop")


@dataclass(frozen=True)
class Config:
    """The mean risk of trained transformers after one part of one layer is clipped.

    Shots 4 and 10 are A2's. It also has 0, at which attention over demonstrations reads nothing.
    Its rates 0.99 and 0.995 keep as little of a matrix of rank 32 as 0.95: one direction.
    """

    models: Named = MODELS  # trained models, by name
    # Beside the n of training, some of them fewer, some more.
    shots: tuple[int, ...] = (4, 10, 40)
    rates: Rates = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    prompts: int = 500  # of each run, the same for all edits
    # A model does the task where its risk is at most this share of that of predicting 0.
    able: float = 0.5
    high: float = 0.75  # from this rate on clipping is drastic
    seed: int = 5


TIERS = {
    "smoke": Config(transformer("smoke"), shots=(2, 8), rates=(0.5, 0.75), prompts=16),
    "laptop": Config(),
    "paper": Config(transformer("paper"), seed=6),
}
