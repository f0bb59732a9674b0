"""The sizes of `clipping_search`, and its searches by name."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.transformers import spec_of, transformer
from experiments.models.named import Named
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between, divides

ALGORITHM = ("Algorithm 1, attention", "Algorithm 1, MLP")
PATIENT = tuple(f"{name}, more prompts" for name in ALGORITHM)
WIDE, COMPOSED = "all layers and modules", "composition"
SEARCHES = (*ALGORITHM, *PATIENT, WIDE, COMPOSED)
TRAINED = "as trained"  # the task of training

Rates = Annotated[tuple[float, ...], between(0.0, 0.999)]

MODELS = transformer("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """A2's Algorithm 1 and wider searches, one for every trained model and task.

    The tasks are the trained one and others that differ from it in one thing. Gains are means over
    prompts, relative to the unclipped risk on the test prompts; every model has prompts of its own.
    """

    models: Named = MODELS  # trained models, by name
    rates: Rates = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)  # A2's, of clipping
    # Layers by condition number, the deepest of which is clipped; A2 leaves it open.
    top_k: Annotated[int, at_least(1)] = 2
    noisy: Annotated[float, POSITIVE] = 1.0  # standard deviation of the noise of the noisy task
    short: Annotated[int, divides("n")] = 5  # shots of the short one
    small: Annotated[float, POSITIVE] = 0.5  # scale of its covariates
    large: Annotated[float, POSITIVE] = 2.0  # and of the other task with scaled covariates
    sparsity: Annotated[int, at_least(1)] = 2  # non-zeros of the sparse task's weights
    validation: Annotated[int, at_least(2)] = 200  # to search with; A2's sets have 200 to 8000
    more_validation: Annotated[int, at_least(2)] = 1000  # others, for a more patient Algorithm 1
    test: Annotated[int, at_least(2)] = 500  # others, for the one test
    seed: Seed = 1

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
        transformer("smoke"),
        rates=(0.0, 0.5),
        short=2,
        sparsity=1,
        validation=8,
        more_validation=16,
        test=8,
    ),
    "laptop": Config(),
    "paper": Config(transformer("paper"), test=2000, seed=2),
}
