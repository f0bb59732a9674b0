"""The sizes of `implicit_trajectories`."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated

from experiments.models.named import Named, choose_pairs
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least

MODELS = {"linear": "linear attention", "softmax": "softmax attention"}  # their names in a config
ALGORITHMS = ("GD", "GD++", "preconditioned GD", "Newton", "ridge")


def both(tier: str) -> Named:
    return choose_pairs(tuple(MODELS.values()), small=tier == "smoke")


LAPTOP = both("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """Trained linear and softmax layers beside the steps of five algorithms fitted to them."""

    # Trained models, by name. The linear ones read prompts in units of their own: so do steps.
    models: Named = LAPTOP
    fitting_steps: Annotated[int, at_least(1)] = 300  # that fit the parameters of each algorithm
    fitting_prompts: Annotated[int, at_least(1)] = 2048  # of each run, its own
    fitting_batch: Annotated[int, at_least(1)] = 64  # prompts in one of these steps
    test_prompts: Annotated[int, at_least(1)] = 256  # of each run, its own
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        for part in ("task.d", "task.lengths", "architecture.depth", "training.seeds"):
            if len({attrgetter(part)(spec) for _, spec in self.models}) > 1:
                raise ValueError(f"linear and softmax: their {part} differ, choose models alike")


TIERS = {
    "smoke": Config(
        both("smoke"), fitting_steps=5, fitting_prompts=16, fitting_batch=8, test_prompts=16
    ),
    "laptop": Config(),
    "paper": Config(both("paper"), fitting_steps=1000, fitting_batch=128, seed=2),
}
