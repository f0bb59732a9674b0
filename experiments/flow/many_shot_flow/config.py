"""The sizes of `many_shot_flow`, and the models that follow from them."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named
from experiments.models.regression import of_kernel
from experiments.models.specs import KERNELS
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

DESCENTS = ("descent", "short steps")
KINDS = (*DESCENTS, "linear, untrained", "linear", "softmax, untrained", "softmax")
LEARNERS = (*DESCENTS, "linear", "softmax")  # those that have something to explain away

Count, Several = Annotated[int, at_least(1)], Annotated[int, at_least(2)]
Positive = Annotated[float, POSITIVE]


@dataclass(frozen=True)
class Config(Bounded):
    """The flows of 2 to 32 demonstrations, half of them near-duplicates of the others.

    The trained stacks are those of `amplification`, where the configurations agree.
    """

    d: Annotated[int, between(1, 64)] = 5
    n: Count = 10  # shots in training
    depth: Annotated[int, between(2, 8)] = 4
    heads: Count = 2  # of softmax
    linear_steps: Count = 800  # training steps of linear stacks
    linear_batch: Count = 64  # prompts in each of these steps
    softmax_steps: Count = 600  # training steps of softmax stacks
    softmax_batch: Count = 32  # prompts in each of these steps
    learning_rate: Positive = 0.02
    gain: Positive = 2.0  # the untrained linear stack has weights before training, times this
    # Added after a first run, in which the steps that are best for one layer overshot: descent with
    # this part of them. The criteria are the same.
    short: Positive = 0.25
    counts: Annotated[tuple[int, ...], at_least(2)] = (2, 4, 8, 16, 32)  # demonstrations, even
    count: Annotated[int, at_least(4)] = 8  # one of them: where duplicates are looked at
    # Of a demonstration and its duplicate, from 0 on.
    correlations: Annotated[tuple[float, ...], between(0.0, 1.0)] = (0.0, 0.5, 0.9)
    runs: Several = 16
    prompts: Several = 128  # of each run
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        even = tuple(sorted({count + count % 2 for count in self.counts}))
        if tuple(self.counts) != even:
            raise ValueError(
                f"counts = {self.counts!r}: choose increasing even numbers; nearest {even}"
            )
        checks.one_of(self, "count", self.counts)
        if len(self.correlations) < 2 or list(self.correlations) != sorted(
            {0.0, *self.correlations}
        ):
            raise ValueError(
                f"correlations = {self.correlations!r}: choose increasing numbers from 0 on, at "
                f"least two; nearest {tuple(sorted({0.0, 0.9, *self.correlations}))}"
            )

    @property
    def models(self) -> Named:
        """Those that are trained here: a seed for every run."""
        training = dict(seeds=self.runs, seed=self.seed)
        return tuple((kernel, of_kernel(kernel, self, **training)) for kernel in KERNELS)


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
}
