"""Settings and criteria of `condition_numbers`, fixed before its first run."""

from dataclasses import dataclass

from experiments.clipping import transformer_config as clipped
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config(clipped.TransformerConfig):
    """Condition numbers and stable ranks of every matrix, and what clipping it does.

    Condition numbers are compared by their logarithm: that of a random square matrix has no mean.
    """

    ends: int = 2  # layers that are called shallow, and deep
    rate: float = 0.75  # at which each matrix is clipped, by itself
    prompts: int = 500  # the same for all runs
    seed: int = 0
    # Criteria.
    same: float = 0.3  # difference of log10 up to which condition numbers are alike: a factor 2

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "ends", 1, self.depth // 2)
        checks.between(self, "rate", 0.0, 0.999)
        checks.between(self, "prompts", 2, None)
        checks.positive(self, "same")
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(**clipped.SMOKE, ends=1, prompts=16),
    "laptop": Config(),
    "paper": Config(**clipped.PAPER, prompts=10_000),
}

MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o"}
MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}
