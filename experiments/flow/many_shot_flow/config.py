"""The sizes and the statements of `many_shot_flow`."""

from dataclasses import dataclass

from experiments.flow.many_shot_flow.statements import statements as statements
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    """The flows of 2 to 32 demonstrations, half of them near-duplicates of the others.

    The trained stacks are those of `amplification`, where the configurations agree.
    """

    d: int = 5
    n: int = 10  # shots in training
    depth: int = 4
    heads: int = 2  # of softmax
    linear_steps: int = 800  # training steps of linear stacks
    linear_batch: int = 64  # prompts in each of these steps
    softmax_steps: int = 600  # training steps of softmax stacks
    softmax_batch: int = 32  # prompts in each of these steps
    learning_rate: float = 0.02
    gain: float = 2.0  # the untrained linear stack has the weights before training, times this
    # Added after a first run, in which the steps that are best for one layer overshot: descent with
    # this part of them. The criteria are the same.
    short: float = 0.25
    counts: tuple[int, ...] = (2, 4, 8, 16, 32)  # demonstrations in the test
    count: int = 8  # one of them: where duplicates are looked at
    correlations: tuple[float, ...] = (0.0, 0.5, 0.9)  # of a demonstration and its duplicate
    runs: int = 16
    prompts: int = 128  # of each run
    seed: int = 1
    # Criteria.
    growth: float = 1.1  # a ratio over another of at least this is amplification

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.between(self, "depth", 2, 8)
        for name in ("n", "heads"):
            checks.between(self, name, 1, None)
        for name in ("linear_steps", "softmax_steps", "linear_batch", "softmax_batch"):
            checks.between(self, name, 1, None)
        for name in ("runs", "prompts"):
            checks.between(self, name, 2, None)
        checks.each_between(self, "counts", 2, None)
        even = tuple(sorted({count + count % 2 for count in self.counts}))
        if tuple(self.counts) != even:
            raise ValueError(
                f"counts = {self.counts!r}: choose increasing even numbers; nearest {even}"
            )
        checks.one_of(self, "count", self.counts)
        checks.between(self, "count", 4, None)
        checks.each_between(self, "correlations", 0.0, 1.0)
        if len(self.correlations) < 2 or list(self.correlations) != sorted(
            {0.0, *self.correlations}
        ):
            raise ValueError(
                f"correlations = {self.correlations!r}: choose increasing numbers from 0 on, at "
                f"least two; nearest {tuple(sorted({0.0, 0.9, *self.correlations}))}"
            )
        for name in ("learning_rate", "gain", "short"):
            checks.positive(self, name)
        checks.between(self, "growth", 1.0, None)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        depth=2,
        heads=1,
        linear_steps=4,
        linear_batch=4,
        softmax_steps=4,
        softmax_batch=4,
        counts=(2, 4),
        count=4,
        correlations=(0.0, 0.9),
        runs=2,
        prompts=4,
    ),
    "laptop": Config(),
    "paper": Config(runs=56, seed=11),
    "gpu": Config(
        depth=6,
        linear_steps=20_000,
        linear_batch=256,
        softmax_steps=50_000,
        softmax_batch=256,
        learning_rate=0.003,
        counts=(2, 4, 8, 16, 32, 64, 128),
        correlations=(0.0, 0.3, 0.5, 0.7, 0.9, 0.99),
        runs=16,
        prompts=1024,
    ),
}
