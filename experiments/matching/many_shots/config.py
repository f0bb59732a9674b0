"""The models, sizes and statements of `many_shots`."""

from dataclasses import dataclass
from functools import partial

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

LINEAR = ("descent", "linear")  # constructed and trained
NAMES = ("a constructed descent", "our briefly trained linear attention")
SCALINGS = ("by n", "fixed")  # what linear attention divides by: its n, or that of training


@dataclass(frozen=True)
class Config:
    """Three stacks of one depth, far beyond the number of demonstrations they are trained on."""

    d: int = 5
    n: int = 32  # demonstrations in training, and what a fixed normalisation divides by
    # Demonstrations in the test.
    shots: tuple[int, ...] = (32, 45, 64, 91, 128, 256, 512, 1024, 2048, 4096)
    softmax_most: int = 1024  # demonstrations: its cost grows with their square
    noises: tuple[float, ...] = (0.0, 0.5, 1.0)  # of the test's labels
    noise_std: float = 0.5  # of the labels in training
    depth: int = 3
    heads: int = 2
    runs: int = 12
    linear_steps: int = 800  # training steps of linear stacks
    linear_batch: int = 64  # prompts in each of these steps
    softmax_steps: int = 600  # training steps of softmax stacks
    softmax_batch: int = 32  # prompts in each of these steps
    learning_rate: float = 0.02
    test_prompts: int = 200  # of each run
    softmax_prompts: int = 24  # the same for softmax stacks, which cost more
    seed: int = 1
    # Criteria. Errors are medians over prompts, then over runs: linear stacks explode on rare ones.
    growth: float = 1.0  # error at the most demonstrations over that at the trained length
    overshoot: float = 10.0  # the same, with a fixed normalisation
    bayes_factor: float = 2.0  # error at the most demonstrations over that of the Bayes rule
    threshold_factor: float = 2.0  # measured over predicted number of demonstrations that is unsafe

    def __post_init__(self):
        checks.between(self, "d", 1, 32)
        checks.between(self, "n", 2, None)
        checks.each_between(self, "shots", 2, 1 << 20)
        kept = [count for count in self.shots if count <= self.softmax_most]
        if list(self.shots) != sorted({*self.shots, self.n}) or min(self.shots) < self.n:
            raise ValueError(f"shots = {self.shots!r}: choose increasing numbers from n = {self.n}")
        if len(self.shots) < 2 or len(kept) < 2:
            raise ValueError(f"softmax_most = {self.softmax_most}: two of shots are at most this")
        checks.each_between(self, "noises", 0, None)
        if 0 not in self.noises or self.noise_std not in self.noises:
            raise ValueError(f"noises = {self.noises!r}: 0 and noise_std are among them")
        checks.between(self, "depth", 1, 8)
        checks.between(self, "heads", 1, 8)
        checks.between(self, "runs", 2, None)
        for name in ("linear", "softmax"):
            checks.between(self, f"{name}_steps", 1, None)
            checks.between(self, f"{name}_batch", 1, None)
        checks.between(self, "test_prompts", 2, None)
        checks.between(self, "softmax_prompts", 2, None)
        for name in ("noise_std", "learning_rate", "growth", "overshoot", "bayes_factor"):
            checks.positive(self, name)
        checks.between(self, "threshold_factor", 1, None)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        shots=(4, 8, 64),
        softmax_most=8,
        noises=(0.0, 0.5),
        depth=2,
        heads=1,
        runs=2,
        linear_steps=6,
        linear_batch=4,
        softmax_steps=6,
        softmax_batch=4,
        test_prompts=8,
        softmax_prompts=2,
    ),
    "laptop": Config(),
    "paper": Config(
        d=8,
        n=128,
        shots=(128, 181, 256, 362, 512, 1024, 2048, 4096),
        softmax_most=4096,
        depth=4,
        heads=4,
        runs=16,
        linear_steps=20_000,
        linear_batch=256,
        softmax_steps=20_000,
        softmax_batch=256,
        learning_rate=0.005,
        test_prompts=4000,
        softmax_prompts=256,
    ),
}


def statements(config) -> tuple[Statement, ...]:
    fresh = "12 fresh runs, 8 before"
    median = partial(Statement, statistic="median", redrawn=fresh)
    question, most = "A3 (2506.04579), section 4.6, open question", max(config.shots)
    error = "the error, median over prompts,"
    longest = max(count for count in config.shots if count <= config.softmax_most)
    rows = []
    for model, name in zip(LINEAR, NAMES, strict=True):
        rows += [
            median(
                f"{model}_normalised",
                question,
                f"Divided by n, {name} gains from demonstrations beyond the trained length",
                f"{error} at {most} demonstrations over that at {config.n}",
                at_most=config.growth,
            ),
            median(
                f"{model}_fixed",
                f"derived here, on {question}",
                f"Divided by the trained length, {name} overshoots",
                f"{error} at {most} demonstrations over that at {config.n}",
                at_least=config.overshoot,
            ),
            median(
                f"{model}_bayes",
                "modelled on A3 (2506.04579), section 4.6",
                f"Divided by n, {name} uses many demonstrations almost as the Bayes rule does",
                f"{error} over the Bayes rule's at {most}",
                at_most=config.bayes_factor,
            ),
        ]
    return (
        *rows,
        median(
            "softmax",
            question,
            "Our briefly trained softmax attention gains from demonstrations beyond the trained "
            "length",
            f"{error} at {longest} demonstrations over that at {config.n}",
            at_most=config.growth,
        ),
        median(
            "threshold",
            "derived here",
            "With a fixed divisor descent is worse than no demonstrations from η λ_max(XᵀX) = 2 on",
            "the number at which it is worse, over that at which η λ_max = 2,",
            at_least=1 / config.threshold_factor,
            at_most=config.threshold_factor,
        ),
    )
