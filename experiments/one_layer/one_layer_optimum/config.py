"""The sizes of `one_layer_optimum`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

Counts = Annotated[tuple[int, ...], at_least(1)]
TASKS = ("isotropic", "anisotropic", "noisy")


@dataclass(frozen=True)
class Config(Bounded):
    """One trained layer beside the closed-form optimum, on three tasks and several lengths."""

    d: Annotated[int, between(1, 64)] = 5
    lengths: Counts = (4, 8, 16, 32, 64)  # values of n
    heads: Counts = (1, 4)  # of the layer, trained with each number
    noise_var: Annotated[float, at_least(0)] = 0.5  # of the task "noisy"
    runs: Annotated[int, at_least(2)] = 8
    steps: Annotated[int, at_least(1)] = 1200
    batch: Annotated[int, at_least(1)] = 64
    learning_rate: Annotated[float, POSITIVE] = 0.15
    init_scale: Annotated[float, POSITIVE] = 0.1
    test_prompts: Annotated[int, at_least(1)] = 20_000
    seed: Seed = 0


TIERS = {
    "smoke": Config(d=2, lengths=(2, 4), heads=(1, 2), runs=2, steps=10, batch=8, test_prompts=64),
    "laptop": Config(),
    "paper": Config(d=8, lengths=(4, 8, 16, 32, 64, 128, 256), runs=16, steps=2000, batch=4096),
}
