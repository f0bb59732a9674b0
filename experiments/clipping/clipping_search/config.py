"""The sizes of `clipping_search`, its tasks and its searches by name."""

from dataclasses import dataclass

from experiments.clipping.clipped_models import PARTS, Rates, spec_of, transformer
from experiments.models.named import Named

ALGORITHM = tuple(f"Algorithm 1, {part}" for part in PARTS)
WIDE = "all layers and modules"
SEARCHES = (*ALGORITHM, WIDE)
TRAINED = "as trained"  # the task of training
TASKS = (TRAINED, "no noise", "more noise", "fewer shots", "smaller inputs", "larger inputs")
TASKS += ("sparse weights",)

MODELS = transformer("laptop")


@dataclass(frozen=True)
class Config:
    """A2's Algorithm 1 and a wider search, for every trained model and task, and a rival.

    The tasks are the trained one and others that differ from it in one thing. Gains are means over
    prompts, relative to the unclipped risk on the test prompts; every model has prompts of its own.
    The rival multiplies the answers of the unclipped model by one number.
    """

    models: Named = MODELS  # trained models, by name
    rates: Rates = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)  # A2's
    # Layers by condition number, the deepest of which is clipped; A2 leaves it open.
    top_k: int = 2
    noisy: float = 1.0  # standard deviation of the noise of the noisy task
    short: int = 4  # shots of the short one
    small: float = 0.5  # scale of its covariates
    large: float = 2.0  # and of the other task with scaled covariates
    sparsity: int = 2  # non-zeros of the sparse task's weights
    validation: int = 200  # to search with; A2's sets have 200 to 8000
    test: int = 2000  # others, for the one test
    seed: int = 3

    @property
    def n(self) -> int:
        """The demonstrations of a prompt in training."""
        return max(spec_of(self).task.lengths)


TIERS = {
    "smoke": Config(
        transformer("smoke"), rates=(0.0, 0.5), short=2, sparsity=1, validation=8, test=8
    ),
    "laptop": Config(),
    "paper": Config(transformer("paper"), seed=4),
}
