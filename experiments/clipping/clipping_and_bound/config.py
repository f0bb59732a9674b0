"""The sizes of `clipping_and_bound`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.linear_stacks import linear_stacks
from experiments.models.named import Named
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least

MODULES = ("w_kq", "w_pv")
MODELS = linear_stacks("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """Every truncation of w_kq and of w_pv, layer by layer, in trained stacks and in descent."""

    models: Named = MODELS  # trained models, by name; stacks that descend are as large
    prompts: Annotated[int, at_least(2)] = 512  # of each run, its own
    population: Annotated[int, at_least(2)] = 64  # fresh pairs for each prompt
    constructed: Annotated[int, at_least(2)] = 16  # sets of prompts for stacks that descend
    # c of C = cI, an assumption of the theorem.
    update_noises: Annotated[tuple[float, ...], POSITIVE] = (
        *(1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3),
        *(1.0, 3.0, 10.0, 30.0, 100.0),
    )
    # Squared errors are clipped to [0, b], so that R = b/2.
    largest_loss: Annotated[float, POSITIVE] = 16.0
    seed: Seed = 1


TIERS = {
    "smoke": Config(
        linear_stacks("smoke"), prompts=4, population=4, constructed=2, update_noises=(0.01, 1.0)
    ),
    "laptop": Config(),
    "paper": Config(linear_stacks("paper"), prompts=1024, population=256),
}
