"""The sizes of `condition_numbers`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.clipped_models import spec_of, transformer
from experiments.models.named import Named
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o"}
MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}
KINDS = ("input", "weights")  # W (I + noise), what W reads; W + noise, what it consists of
MODELS = transformer("laptop")


@dataclass(frozen=True)
class Disturbed(Bounded):
    """How far answers move when what one matrix reads, or the matrix, is disturbed a little."""

    # Of a disturbance, relative to what is disturbed.
    level: Annotated[float, POSITIVE] = 0.1
    draws: Annotated[int, at_least(1)] = 4  # of disturbances of each matrix
    rate: Annotated[float, between(0.0, 0.999)] = 0.5  # at which a matrix is clipped
    prompts: Annotated[int, at_least(2)] = 256  # of each run, its own
    seed: Seed = 1


@dataclass(frozen=True)
class Config(Bounded):
    """Condition numbers and stable ranks of every matrix, and what clipping it does.

    Condition numbers are compared by their logarithm: that of a random square matrix has no mean.
    """

    models: Named = MODELS  # trained models, by name
    ends: Annotated[int, at_least(1)] = 2  # layers that are called shallow, and deep
    # At which each matrix is clipped, by itself.
    rate: Annotated[float, between(0.0, 0.999)] = 0.75
    prompts: Annotated[int, at_least(2)] = 500  # of each run
    seed: Seed = 1
    disturbed: Disturbed = Disturbed()  # what disturbances of a matrix do

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "ends", 1, spec_of(self).architecture.depth // 2)


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
