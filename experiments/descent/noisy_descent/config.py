"""The sizes and the criteria of `noisy_descent`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.descent.linear_stacks import LINEAR, linear
from experiments.descent.noisy_descent.statements import statements as statements
from experiments.models.named import named
from experiments.models.specs import Spec
from lsa_lab.harness import checks

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
    "another shape",  # as large as Eq. 4's, the same in all entries of W
    "no noise",
)


def softmax(tier: str) -> Spec:
    """Softmax attention and nothing else, near ridge regression."""
    return dict(named(tier))["softmax attention"]


SOFTMAX = softmax("laptop")


@dataclass(frozen=True)
class Config:
    """The spread of updates over prompts of one task, and descent with noise of its size."""

    linear: Spec = LINEAR  # the trained linear stacks
    softmax: Spec = SOFTMAX  # the trained softmax attention
    shots: tuple[int, ...] = (10, 20, 40, 80)  # in the test of the linear stack
    tasks: int = 24  # of each run, its own
    prompts: int = 256  # of each task
    normals: int = 20_000  # samples of as many normal numbers, for the test's critical value
    seed: int = 1
    # Criteria.
    same_shape: float = 0.1  # excess kurtosis up to which noise counts as Gaussian
    passes: float = 0.9  # share of noises that the test of level 5 % lets pass; of normal ones .95
    alike: float = 0.1  # relative difference of risks up to which two descents test alike

    def __post_init__(self):
        checks.kinds(self)
        checks.each_between(self, "shots", 2, None)
        n = max(self.linear.task.lengths)
        if list(self.shots) != sorted({*self.shots, n, 2 * n}):
            raise ValueError(
                f"shots = {self.shots!r}: choose increasing numbers with n = {n} and 2n among them"
            )
        for name in ("tasks", "prompts"):
            checks.between(self, name, 2, None)
        checks.between(self, "normals", 20, None)
        for name in ("same_shape", "alike"):
            checks.positive(self, name)
        checks.between(self, "passes", 0, 1)
        checks.seed(self, "seed")


_TINY = dict(d=2, n=4, depth=2)
TIERS = {
    "smoke": Config(
        linear=linear(10, 3, batch=8, **_TINY),
        softmax=softmax("smoke"),
        shots=(4, 8),
        tasks=3,
        prompts=16,
        normals=100,
    ),
    "laptop": Config(),
    "paper": Config(linear=linear(2400, 64, seed=2), softmax=softmax("paper"), tasks=48, seed=2),
    "gpu": Config(
        linear=linear(20_000, 16, batch=512, d=8),
        shots=(10, 20, 40, 80, 160, 320),
        tasks=96,
        prompts=1024,
    ),
}
