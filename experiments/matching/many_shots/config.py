"""The models and sizes of `many_shots`."""

from dataclasses import dataclass

from experiments.matching.configs import Trained
from experiments.models.named import choose_pairs

LINEAR = ("descent", "linear")  # constructed and trained
TRAINED = ("linear attention", "softmax attention")  # the second and the third stack
ALL = (*LINEAR, "softmax")
SCALINGS = ("by n", "fixed")  # what linear attention divides by: its n, or that of training

Shots = tuple[int, ...]


@dataclass(frozen=True)
class Config(Trained):
    """Three stacks of one depth, far beyond the number of demonstrations they are trained on."""

    # Demonstrations in the test.
    shots: Shots = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    class_shots: tuple[int, int] = (128, 1024)  # between which the paper's classification loses
    softmax_most: int = 1024  # demonstrations: its cost grows with their square
    noises: tuple[float, ...] = (0.0, 0.5, 1.0)  # of the test's labels
    # Of the labels in training, and for softmax and two classes in the test.
    noise_std: float = 0.5
    depth: int = 4  # of the constructed descent
    runs: int = 9  # as many as the seeds of the models
    test_prompts: int = 400  # of each run
    # The same for softmax stacks, which cost more.
    softmax_prompts: int = 32
    seed: int = 3


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
