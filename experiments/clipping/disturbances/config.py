"""The sizes of `disturbances`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.transformers import transformer
from experiments.models.named import Named
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o"}
MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}
KINDS = ("input", "weights")  # W (I + noise), what W reads; W + noise, what it consists of
MODELS = transformer("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """How far answers move when what one matrix reads, or the matrix, is disturbed a little."""

    models: Named = MODELS  # trained models, by name
    # Of a disturbance, relative to what is disturbed.
    level: Annotated[float, POSITIVE] = 0.1
    draws: Annotated[int, at_least(1)] = 4  # of disturbances of each matrix
    rate: Annotated[float, between(0.0, 0.999)] = 0.5  # at which a matrix is clipped
    prompts: Annotated[int, at_least(2)] = 256  # of each run, its own
    seed: Seed = 1


TIERS = {
    "smoke": Config(transformer("smoke"), draws=2, prompts=8),
    "laptop": Config(),
    "paper": Config(transformer("paper"), draws=12, prompts=128, seed=2),
}
