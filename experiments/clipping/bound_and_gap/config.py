"""The sizes of `bound_and_gap`."""

from dataclasses import dataclass

from experiments.clipping.clipped_models import linear_stacks
from experiments.models.named import Named

GRID = ("noise", "shots", "depth")
MODULES = ("w_kq", "w_pv")
MODELS = linear_stacks("laptop")


@dataclass(frozen=True)
class Clipped:
    """Every truncation of w_kq and of w_pv, layer by layer, in trained stacks."""

    prompts: int = 512  # of each run, its own
    population: int = 64  # fresh pairs for each prompt
    seed: int = 1


@dataclass(frozen=True)
class Config:
    """Stacks that descend with their best step size, on prompts of one task at a time; and trained
    stacks, clipped."""

    models: Named = MODELS  # trained models, by name
    d: int = 4
    depths: tuple[int, ...] = (1, 2, 3, 4)  # steps, one a layer
    # n, divisors of the largest.
    shots: tuple[int, ...] = (8, 16, 32, 64)
    # Standard deviation of the labels' noise.
    noises: tuple[float, ...] = (0.0, 0.5, 1.0)
    # c of C = cI, the noise that the theorem assumes.
    update_noises: tuple[float, ...] = (
        *(1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3),
        *(1.0, 3.0, 10.0, 30.0, 100.0),
    )
    # Squared errors are clipped to [0, b], so that R = b/2.
    largest_loss: float = 16.0
    groups: int = 16  # tasks
    prompts: int = 64  # of each task
    tuning_prompts: int = 16  # of each task, for the step size
    population: int = 128  # fresh pairs for each prompt
    step_sizes: int = 24  # the best of so many
    seed: int = 1
    clipped: Clipped = Clipped()  # trained stacks, of which a part is clipped


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
