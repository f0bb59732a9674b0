"""The sizes and the criteria of `clipping_search`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.clipping.clipping_search.statements import statements as statements
from experiments.clipping.transformer_config import GPU, PAPER, SMOKE, TransformerConfig
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config(TransformerConfig):
    """A2's Algorithm 1 and wider searches, one for every trained model and task.

    The tasks are the trained one and others that differ from it in one thing. Gains are means over
    prompts, relative to the unclipped risk on the test prompts; every model has prompts of its own.
    """

    rates: tuple[float, ...] = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)  # A2's, of clipping
    top_k: int = 2  # layers by condition number, the deepest of which is clipped; A2 leaves it open
    noisy: float = 1.0  # standard deviation of the noise of the noisy task
    short: int = 5  # shots of the short one; a divisor of n
    small: float = 0.5  # scale of its covariates
    large: float = 2.0  # and of the other task with scaled covariates
    sparsity: int = 2  # non-zeros of the sparse task's weights
    validation: int = 200  # prompts to search with; A2's sets have 200 to 8000
    more_validation: int = 1000  # others, for a more patient Algorithm 1
    test: int = 500  # others, for the one test
    seed: int = 1
    # Criteria.
    gain: float = 0.01  # of the risk; at least this is an improvement
    margin: float = 0.1  # wins less losses, as a share of the searches

    def __post_init__(self):
        super().__post_init__()
        checks.each_between(self, "rates", 0.0, 0.999)
        checks.between(self, "top_k", 1, self.depth)
        checks.divides(self, "short", "n")
        checks.between(self, "sparsity", 1, self.d)
        for name in ("noisy", "small", "large", "gain"):
            checks.positive(self, name)
        for name in ("validation", "more_validation", "test"):
            checks.between(self, name, 2, None)
        checks.between(self, "margin", 0.0, 1.0)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        **SMOKE, rates=(0.0, 0.5), short=2, sparsity=1, validation=8, more_validation=16, test=8
    ),
    "laptop": Config(),
    "paper": Config(**PAPER, test=2000, seed=2),
    "gpu": Config(**GPU, validation=2000, more_validation=8000, test=10_000),
}
