"""The models, sizes and statements of `many_shots`."""

from dataclasses import dataclass
from functools import partial

from experiments.models.named import Named, named
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

LINEAR = ("descent", "linear")  # constructed and trained
NAMES = ("a constructed descent", "our trained linear attention")
TRAINED = ("linear attention", "softmax attention")  # the second and the third stack
ALL = (*LINEAR, "softmax")
SCALINGS = ("by n", "fixed")  # what linear attention divides by: its n, or that of training


@dataclass(frozen=True)
class Config:
    """Three stacks of one depth, far beyond the number of demonstrations they are trained on."""

    models: Named  # the trained stacks, in the order of TRAINED
    d: int = 8
    n: int = 20  # demonstrations in training, and what a fixed normalisation divides by
    # Demonstrations in the test.
    shots: tuple[int, ...] = (20, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    class_shots: tuple[int, int] = (128, 1024)  # between which the paper's classification loses
    softmax_most: int = 1024  # demonstrations: its cost grows with their square
    noises: tuple[float, ...] = (0.0, 0.5, 1.0)  # of the test's labels
    noise_std: float = 0.5  # of the labels in training, and for softmax and two classes in the test
    depth: int = 4  # of the constructed descent
    runs: int = 9  # as many as the seeds of the models
    test_prompts: int = 400  # of each run
    softmax_prompts: int = 32  # the same for softmax stacks, which cost more
    seed: int = 3
    # Criteria. Errors are medians over prompts, then over runs: linear stacks explode on rare ones.
    growth: float = 1.0  # error at the most demonstrations over that at the trained length
    overshoot: float = 10.0  # the same, with a fixed normalisation
    bayes_factor: float = 2.0  # error at the most demonstrations over that of the Bayes rule
    classes: float = 0.0  # share of wrong classes at the most demonstrations less that before: more
    threshold_factor: float = 2.0  # measured over predicted number of demonstrations that is unsafe

    def __post_init__(self):
        checks.kinds(self)
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
            raise ValueError(f"noises = {self.noises!r}: choose 0 and noise_std among them")
        if not {*self.class_shots} <= {*kept} or len({*self.class_shots}) < 2:
            raise ValueError(f"class_shots = {self.class_shots!r}: two of {kept}")
        if [name for name, _ in self.models] != [*TRAINED]:
            raise ValueError(f"models: {' and '.join(TRAINED)}, in this order")
        for _, spec in self.models:
            if (spec.task.d, *spec.task.lengths) != (self.d, self.n):
                raise ValueError(f"models are trained on d = {self.d} and n = {self.n}")
            checks.between(self, "runs", 2, spec.training.seeds)
        checks.between(self, "depth", 1, 8)
        checks.between(self, "test_prompts", 2, None)
        checks.between(self, "softmax_prompts", 2, None)
        for name in ("noise_std", "growth", "overshoot", "bayes_factor"):
            checks.positive(self, name)
        checks.between(self, "classes", 0, 1)
        checks.between(self, "threshold_factor", 1, None)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        shots=(4, 8, 64),
        class_shots=(4, 8),
        softmax_most=8,
        noises=(0.0, 0.5),
        depth=2,
        models=named("smoke", TRAINED),
        runs=2,
        test_prompts=8,
        softmax_prompts=2,
    ),
    "laptop": Config(named("laptop", TRAINED)),
    "paper": Config(named("paper", TRAINED), runs=36, seed=13),
    "gpu": Config(
        d=16,
        n=40,
        shots=(40, 64, 128, 256, 512, 1024, 2048, 4096),
        softmax_most=4096,
        depth=6,
        models=named("gpu", TRAINED),
        test_prompts=4000,
        softmax_prompts=256,
    ),
}


def statements(config) -> tuple[Statement, ...]:
    fresh, models = (
        f"{config.runs} fresh runs, 12 before",
        "models trained to the end, at d = 8; they were brief",
    )
    median = partial(Statement, statistic="median", revision=models, redrawn=fresh)
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
    few, many = config.class_shots
    section = "A3 (2506.04579), section 4.6, in our setting"
    rows += [
        Statement(
            f"{model}_classes",
            f"modelled on {section[:-16]}" if model == "descent" else section,
            f"From {few} to {many} demonstrations {name} loses in classification",
            f"the share of wrong classes at {many} less that at {few}, on the same prompts",
            at_least=config.classes,
            redrawn=f"{config.runs} fresh runs of twice the prompts, 9 before",
            note="two classes, the sign of w·x + noise; the query has none; "
            "the models are trained on regression",
        )
        for model, name in zip(ALL, (*NAMES, "our trained softmax attention"), strict=True)
    ]
    return (
        *rows,
        median(
            "softmax",
            question,
            "Our trained softmax attention gains from demonstrations beyond the trained length",
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
