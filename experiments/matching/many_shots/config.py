"""The models and sizes of `many_shots`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.matching.configs import AtLeastTwo, Positive, Trained, check_names
from experiments.models.named import choose_pairs
from lsa_lab.harness.run.bounds import INCREASING, Seed, at_least, between

LINEAR = ("descent", "linear")  # constructed and trained
TRAINED = ("linear attention", "softmax attention")  # the second and the third stack
ALL = (*LINEAR, "softmax")
SCALINGS = ("by n", "fixed")  # what linear attention divides by: its n, or that of training

Shots = Annotated[tuple[int, ...], between(2, 1 << 20), INCREASING]


@dataclass(frozen=True)
class Config(Trained):
    """Three stacks of one depth, far beyond the number of demonstrations they are trained on."""

    # Demonstrations in the test.
    shots: Shots = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    class_shots: tuple[int, int] = (128, 1024)  # between which the paper's classification loses
    softmax_most: int = 1024  # demonstrations: its cost grows with their square
    noises: Annotated[tuple[float, ...], at_least(0)] = (0.0, 0.5, 1.0)  # of the test's labels
    # Of the labels in training, and for softmax and two classes in the test.
    noise_std: Positive = 0.5
    depth: Annotated[int, between(1, 8)] = 4  # of the constructed descent
    runs: int = 9  # as many as the seeds of the models
    test_prompts: AtLeastTwo = 400  # of each run
    # The same for softmax stacks, which cost more.
    softmax_prompts: AtLeastTwo = 32
    seed: Seed = 3

    def __post_init__(self):
        super().__post_init__()
        check_names(self, TRAINED)
        kept = [count for count in self.shots if count <= self.softmax_most]
        if self.shots[0] != self.n:
            raise ValueError(f"shots = {self.shots!r}: choose increasing numbers from n = {self.n}")
        if not {0, self.noise_std} <= {*self.noises}:
            raise ValueError(f"noises = {self.noises!r}: choose 0 and noise_std among them")
        if not {*self.class_shots} <= {*kept} or len({*self.class_shots}) < 2:
            raise ValueError(f"class_shots = {self.class_shots!r}: two of {kept}")


TIERS = {
    "smoke": Config(
        choose_pairs(TRAINED, small=True),
        shots=(4, 8, 64),
        class_shots=(4, 8),
        softmax_most=8,
        noises=(0.0, 0.5),
        depth=2,
        runs=2,
        test_prompts=8,
        softmax_prompts=2,
    ),
    "laptop": Config(choose_pairs(TRAINED)),
}
