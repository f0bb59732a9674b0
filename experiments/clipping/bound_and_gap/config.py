"""The sizes of `bound_and_gap`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.clipped_models import linear_stacks
from experiments.models.named import Named
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

GRID = ("noise", "shots", "depth")
MODULES = ("w_kq", "w_pv")
MODELS = linear_stacks("laptop")


@dataclass(frozen=True)
class Clipped(Bounded):
    """Every truncation of w_kq and of w_pv, layer by layer, in trained stacks."""

    prompts: Annotated[int, at_least(2)] = 512  # of each run, its own
    population: Annotated[int, at_least(2)] = 64  # fresh pairs for each prompt
    seed: Seed = 1


@dataclass(frozen=True)
class Config(Bounded):
    """Stacks that descend with their best step size, on prompts of one task at a time; and trained
    stacks, clipped."""

    models: Named = MODELS  # trained models, by name
    d: Annotated[int, between(1, 64)] = 4
    depths: Annotated[tuple[int, ...], between(1, 8)] = (1, 2, 3, 4)  # steps, one a layer
    # n, divisors of the largest.
    shots: Annotated[tuple[int, ...], at_least(1)] = (8, 16, 32, 64)
    # Standard deviation of the labels' noise.
    noises: Annotated[tuple[float, ...], at_least(0)] = (0.0, 0.5, 1.0)
    # c of C = cI, the noise that the theorem assumes.
    update_noises: Annotated[tuple[float, ...], POSITIVE] = (
        *(1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3),
        *(1.0, 3.0, 10.0, 30.0, 100.0),
    )
    # Squared errors are clipped to [0, b], so that R = b/2.
    largest_loss: Annotated[float, POSITIVE] = 16.0
    groups: Annotated[int, at_least(2)] = 16  # tasks
    prompts: Annotated[int, at_least(2)] = 64  # of each task
    tuning_prompts: Annotated[int, at_least(2)] = 16  # of each task, for the step size
    population: Annotated[int, at_least(2)] = 128  # fresh pairs for each prompt
    step_sizes: Annotated[int, at_least(2)] = 24  # the best of so many
    seed: Seed = 1
    clipped: Clipped = Clipped()  # trained stacks, of which a part is clipped

    def __post_init__(self):
        super().__post_init__()
        if any(max(self.shots) % n for n in self.shots):
            raise ValueError(f"shots = {self.shots!r}: each divides the largest")
        for name in ("depths", "shots"):
            if len(set(getattr(self, name))) < 2:
                raise ValueError(f"{name} = {getattr(self, name)!r}: ranks need two or more values")


SMALL = dict(d=2, depths=(1, 2), shots=(4, 8), noises=(0.5, 1.0), update_noises=(0.01, 1.0))
SMALL |= dict(groups=2, prompts=4, population=8, step_sizes=4)
TIERS = {
    "smoke": Config(
        models=linear_stacks("smoke"), clipped=Clipped(prompts=4, population=4), **SMALL
    ),
    "laptop": Config(),
    # Of the trained stacks, the result of the laptop tier.
    "paper": Config(d=8, shots=(8, 16, 32, 64, 128, 256), groups=64, prompts=512, population=512),
}
