"""The sizes of `many_shot_flow`, and the models that follow from them."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named, choose_pairs
from experiments.models.regression import kernel_spec
from experiments.models.specs import KERNELS
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

DESCENTS = ("descent", "short steps")
KINDS = (*DESCENTS, "linear, untrained", "linear", "softmax, untrained", "softmax")
LEARNERS = (*DESCENTS, "linear", "softmax")  # those that have something to explain away
ALONE = "linear attention, alone"  # a case of trained models: each demonstration in its own prompt
NAMES = ("linear attention", "softmax attention", "transformer")

Count, Several = Annotated[int, at_least(1)], Annotated[int, at_least(2)]
Positive = Annotated[float, POSITIVE]


@dataclass(frozen=True)
class Null(Bounded):
    """Models beside the Bayes rule, on prompts that no other row has seen: those that are trained
    to its risk, on prompts as in training; and the stacks of this experiment."""

    trained: Named  # committed models near ridge regression
    prompts: Several = 256  # of each of their runs
    own_prompts: Several = 64  # of each run of the stacks
    penalty: Positive = 1e-9  # of ridge, the Bayes rule of prompts without noise: least squares
    seed: Seed = 7

    @property
    def models(self) -> Named:
        return tuple((f"null: {name}", spec) for name, spec in self.trained)


@dataclass(frozen=True)
class Config(Bounded):
    """The flows of many demonstrations, and what near-duplicates change.

    The trained stacks are those of `amplification`, where the configurations agree.
    """

    null: Null  # what the Bayes rule does on the same prompts
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
    most: Annotated[int, at_least(4)] = 32  # demonstrations of a prompt, without duplicates
    count: Annotated[int, between(4, "most")] = 8  # demonstrations where duplicates are looked at
    # Of a demonstration and its duplicate, from 0 on.
    correlations: Annotated[tuple[float, ...], between(0, 1), INCREASING] = (0.0, 0.5, 0.9)
    runs: Several = 16
    prompts: Several = 128  # of each run
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        if len(self.correlations) < 2 or self.correlations[0]:
            raise ValueError(
                f"correlations = {self.correlations!r}: choose at least two; nearest "
                f"{tuple(sorted({0.0, 0.9, *self.correlations}))}"
            )

    @property
    def models(self) -> Named:
        """Those that are trained here, a seed for every run; and those of the null."""
        training = dict(seeds=self.runs, seed=self.seed)
        own = tuple((kernel, kernel_spec(kernel, self, **training)) for kernel in KERNELS)
        return own + self.null.models


TIERS = {
    "smoke": Config(
        Null(choose_pairs(NAMES[:1], small=True), prompts=4, own_prompts=4),
        d=2,
        n=4,
        depth=2,
        heads=1,
        linear_steps=4,
        linear_batch=4,
        softmax_steps=4,
        softmax_batch=4,
        most=4,
        count=4,
        correlations=(0.0, 0.9),
        runs=2,
        prompts=4,
    ),
    "laptop": Config(Null(choose_pairs(NAMES))),
    # The weights of the null's 36 seeds are not committed: it has the laptop tier's nine.
    "paper": Config(
        Null(choose_pairs(NAMES), prompts=1024, own_prompts=128, seed=8), runs=56, seed=11
    ),
}
