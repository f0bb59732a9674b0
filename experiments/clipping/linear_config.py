"""The trained linear stacks that experiments on clipping share: the fields of their configs."""

from dataclasses import dataclass

from lsa_lab.harness import checks


@dataclass(frozen=True)
class LinearConfig:
    """One head of merged weights a layer; with the same fields, the same weights."""

    d: int = 5
    n: int = 20
    noise_std: float = 0.5
    depth: int = 4
    runs: int = 16  # one or two diverge early, and are left out
    linear_steps: int = 2400  # training steps
    linear_batch: int = 128  # prompts in each of these steps
    learning_rate: float = 0.025
    clip: float = 0.1  # of the gradient's norm: deep linear attention meets rare, enormous ones
    training_seed: int = 1  # the seed of the weights

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.between(self, "n", 2, None)
        checks.between(self, "depth", 2, 8)
        checks.between(self, "runs", 2, None)
        for name in ("linear_steps", "linear_batch"):
            checks.between(self, name, 1, None)
        for name in ("noise_std", "learning_rate", "clip"):
            checks.positive(self, name)
        checks.seed(self, "training_seed")


SMOKE = dict(d=2, n=4, depth=2, runs=3, linear_steps=10, linear_batch=8)
PAPER = dict(linear_steps=20_000, linear_batch=512, runs=16)
