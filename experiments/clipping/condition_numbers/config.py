"""The sizes of `condition_numbers`."""

from dataclasses import dataclass

from experiments.clipping.clipped_models import transformer
from experiments.models.named import Named

MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o"}
MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}
KINDS = ("input", "weights")  # W (I + noise), what W reads; W + noise, what it consists of
MODELS = transformer("laptop")


@dataclass(frozen=True)
class Disturbed:
    """How far answers move when what one matrix reads, or the matrix, is disturbed a little."""

    # Of a disturbance, relative to what is disturbed.
    level: float = 0.1
    draws: int = 4  # of disturbances of each matrix
    rate: float = 0.5  # at which a matrix is clipped
    prompts: int = 256  # of each run, its own
    seed: int = 1


@dataclass(frozen=True)
class Config:
    """Condition numbers and stable ranks of every matrix, and what clipping it does.

    Condition numbers are compared by their logarithm: that of a random square matrix has no mean.
    """

    models: Named = MODELS  # trained models, by name
    ends: int = 2  # layers that are called shallow, and deep
    # At which each matrix is clipped, by itself.
    rate: float = 0.75
    prompts: int = 500  # of each run
    seed: int = 1
    disturbed: Disturbed = Disturbed()  # what disturbances of a matrix do


TIERS = {
    "smoke": Config(
        transformer("smoke"), ends=1, prompts=16, disturbed=Disturbed(draws=2, prompts=8)
    ),
    "laptop": Config(),
    "paper": Config(
        transformer("paper"),
        prompts=2000,
        seed=2,
        disturbed=Disturbed(draws=12, prompts=128, seed=2),
    ),
}
