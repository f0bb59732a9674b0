"""The sizes of `clipping_search`, its tasks and its searches by name."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.clipped_models import PARTS, Rates, spec_of, transformer
from experiments.models.named import Named
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, divides

ALGORITHM = tuple(f"Algorithm 1, {part}" for part in PARTS)
WIDE = "all layers and modules"
SEARCHES = (*ALGORITHM, WIDE)
TRAINED = "as trained"  # the task of training
TASKS = (TRAINED, "no noise", "more noise", "fewer shots", "smaller inputs", "larger inputs")
TASKS += ("sparse weights",)

MODELS = transformer("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """A2's Algorithm 1 and a wider search, for every trained model and task, and a rival.

    The tasks are the trained one and others that differ from it in one thing. Gains are means over
    prompts, relative to the unclipped risk on the test prompts; every model has prompts of its own.
    The rival multiplies the answers of the unclipped model by one number.
    """

    models: Named = MODELS  # trained models, by name
    rates: Rates = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)  # A2's
    # Layers by condition number, the deepest of which is clipped; A2 leaves it open.
    top_k: Annotated[int, at_least(1)] = 2
    noisy: Annotated[float, POSITIVE] = 1.0  # standard deviation of the noise of the noisy task
    short: Annotated[int, divides("n")] = 4  # shots of the short one
    small: Annotated[float, POSITIVE] = 0.5  # scale of its covariates
    large: Annotated[float, POSITIVE] = 2.0  # and of the other task with scaled covariates
    sparsity: Annotated[int, at_least(1)] = 2  # non-zeros of the sparse task's weights
    validation: Annotated[int, at_least(2)] = 200  # to search with; A2's sets have 200 to 8000
    test: Annotated[int, at_least(2)] = 2000  # others, for the one test
    seed: Seed = 3

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "top_k", 1, spec_of(self).architecture.depth)
        checks.between(self, "sparsity", 1, spec_of(self).task.d)

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
