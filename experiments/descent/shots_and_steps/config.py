"""The sizes of `shots_and_steps`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between, divides

MODELS = ("linear", "softmax")


@dataclass(frozen=True)
class Config(Bounded):
    """Trained linear and softmax transformers, with and without noise, at several lengths."""

    d: Annotated[int, between(1, 64)] = 5
    n: Annotated[int, at_least(2)] = 10  # shots in training
    # Shots in the test: d, 2d and n among them.
    shots: Annotated[tuple[int, ...], at_least(1)] = (2, 3, 5, 7, 10, 20)
    noise_std: Annotated[float, POSITIVE] = 0.5  # where there is noise
    depth: Annotated[int, between(1, 8)] = 3
    # Of a softmax layer, each as wide as a token; a linear layer has one.
    heads: Annotated[int, between(1, 8)] = 2
    runs: Annotated[int, at_least(2)] = 12  # with noise, and as many without
    linear_steps: int = 800  # training steps of linear stacks
    linear_batch: Annotated[int, at_least(1)] = 64  # prompts in each of these steps
    softmax_steps: int = 700  # training steps of softmax stacks
    softmax_batch: Annotated[int, at_least(1)] = 32  # prompts in each of these steps
    learning_rate: Annotated[float, POSITIVE] = 0.02
    # Checkpoints during training at which the error is measured.
    looks: Annotated[int, divides("linear_steps"), divides("softmax_steps")] = 10
    test_prompts: Annotated[int, at_least(1)] = 1000  # of each run, its own
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        if list(self.shots) != sorted({*self.shots, self.d, 2 * self.d, self.n}):
            raise ValueError(
                f"shots = {self.shots!r}: choose increasing numbers with d = {self.d}, 2d and "
                f"n = {self.n} among them; nearest "
                f"{tuple(sorted({*self.shots, self.d, 2 * self.d, self.n}))}"
            )


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        shots=(2, 4),
        depth=2,
        runs=2,
        linear_steps=10,
        linear_batch=8,
        softmax_steps=10,
        softmax_batch=8,
        looks=2,
        test_prompts=16,
    ),
    "laptop": Config(),
    "paper": Config(runs=36, seed=11),
}
