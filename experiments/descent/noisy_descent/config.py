"""The sizes of `noisy_descent`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.descent.specs import STACK, linear, spec_of, stack_and_softmax
from experiments.models.named import Named
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least

STATES = ("trained", "untrained")
READINGS = ("query", "whole")  # what an update adds to the answer; the update in random directions

# Descent on W from I with the weights of the stack. Moments of n demonstrations are Wishart; those
# of A2's Eq. 4 are Gaussian, of the same mean and covariance. "Same": one draw for all layers.
PATHS = (
    "model",  # Wishart, same
    "Gaussian, same",
    "fresh demonstrations",  # Wishart, a draw for each layer: stochastic gradient descent
    "Eq. 4",  # Gaussian, a draw for each layer
    "half the noise",  # Eq. 4 with half the standard deviation
    "twice the noise",
    "no noise",
)

MODELS = stack_and_softmax("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """The spread of updates over prompts of one task, and descent with noise of its size."""

    models: Named = MODELS  # trained models, by name
    shots: Annotated[tuple[int, ...], at_least(2)] = (10, 20, 40, 80)  # in the test of the stacks
    tasks: Annotated[int, at_least(2)] = 24  # of each run, its own
    prompts: Annotated[int, at_least(2)] = 256  # of each task
    # Samples of as many normal numbers, for the test's critical value.
    normals: Annotated[int, at_least(20)] = 20_000
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        n = max(spec_of(self, STACK).task.lengths)
        if list(self.shots) != sorted({*self.shots, n, 2 * n}):
            raise ValueError(
                f"shots = {self.shots!r}: choose increasing numbers with n = {n} and 2n among them"
            )


TIERS = {
    "smoke": Config(
        stack_and_softmax("smoke", linear(10, 3, batch=8, d=2, n=4, depth=2)),
        shots=(4, 8),
        tasks=3,
        prompts=16,
        normals=100,
    ),
    "laptop": Config(),
    "paper": Config(stack_and_softmax("paper", linear(2400, 64, seed=2)), tasks=48, seed=2),
}
