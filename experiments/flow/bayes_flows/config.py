"""The sizes of `bayes_flows`, and the stacks that follow from them."""

from dataclasses import dataclass, replace
from typing import Annotated

from experiments.models.named import Named
from experiments.models.specs import KERNELS, Spec, dense_spec
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

PRIORS = ("dense", "sparse")  # of the task: all of its weights N(0, 1), or some of them

DIRECTIONS = ("least", "largest")  # change of the log ratio that the ascent seeks

Width, Depth = Annotated[int, between(1, 64)], Annotated[int, between(2, 8)]
Count, Several = Annotated[int, at_least(1)], Annotated[int, at_least(2)]
Feedbacks = Annotated[tuple[float, ...], between(-1.0, 1.0)]
Positive, Positives = Annotated[float, POSITIVE], Annotated[tuple[float, ...], POSITIVE]


@dataclass(frozen=True)
class Limits(Bounded):
    """Counterexamples to amplification, found by ascent, and maps of where it holds.

    The ascent moves the weights of one tied linear layer, two demonstrations and a query. All have
    a fixed length: tokens 1, and |w_kq|_F = |w_pv|_F = √budget. Maps have the stacks, the
    demonstrations and the gain of `amplification`.
    """

    search_d: Width = 1  # covariates in the ascent
    search_depth: Depth = 4  # layers in the ascent
    budgets: Positives = (0.03, 0.1, 0.3, 1.0, 3.0)  # of its weights, as above
    shown: float = 1.0  # one of them: the budget whose counterexample is kept
    lead: Positive = 0.3  # log ratio that the demonstration ahead has after one layer, at least
    cap: Positive = 7.0  # changes of the log ratio far beyond are not pursued
    steps: Count = 300  # of the ascent
    learning_rate: Positive = 0.05  # of the ascent
    restarts: Several = 16  # of the ascent, at each budget
    copies: Count = 64  # of what was found, every number with a relative error
    error: Positive = 0.05  # the standard deviation of that relative error
    d: Width = 5  # covariates in the maps
    depth: Depth = 6  # layers in the maps
    # w_kq = |f| cI + √(1 - f²) noise, w_pv the same with the sign of f: f is the feedback.
    feedbacks: Feedbacks = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
    gains: Positives = (0.03, 0.1, 0.3, 1.0, 3.0)  # of the stacks in the maps
    runs: Several = 16
    pairs: Several = 128  # of demonstrations, for each run
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        checks.one_of(self, "shown", self.budgets)


@dataclass(frozen=True)
class Config(Bounded):
    """Stacks of each kernel, prior and depth along their training, and the Bayes rule of the prior
    on the same prompts."""

    d: Width = 4
    n: Several = 16  # demonstrations of a prompt, in training and in the test
    sparsity: Annotated[int, between(1, "d")] = 2  # weights that are not zero under a sparse prior
    noise_std: Positive = 1.0  # of the labels
    depths: Annotated[tuple[int, ...], between(1, 8), INCREASING] = (1, 2, 4, 8)
    heads: Count = 2
    width: Count = 16  # of the stream of softmax stacks
    linear_steps: Count = 1500  # training steps of linear stacks
    softmax_steps: Count = 500  # training steps of softmax stacks
    batch: Count = 64  # prompts in each of these steps
    parts: Count = 5  # equal parts of a training, after each of which a stack is looked at
    runs: Several = 9  # trainings of each stack
    prompts: Several = 256  # of each run, the same for all stacks of a prior
    seed: Seed = 0
    limits: Limits = Limits()

    def __post_init__(self):
        super().__post_init__()
        checks.divides(self, "heads", "width")
        for kernel in KERNELS:
            checks.divides(self, "parts", f"{kernel}_steps")

    @property
    def models(self) -> Named:
        return tuple(
            (name(kernel, prior, depth), self.spec(kernel, prior, depth))
            for kernel in KERNELS
            for prior in PRIORS
            for depth in self.depths
        )

    def spec(self, kernel: str, prior: str, depth: int) -> Spec:
        """A stack of linear attention that reads prompts in units of their own, or of softmax
        attention in a wider stream; steps of a linear one are the shorter the deeper it is."""
        recipe = dict(batch=self.batch, seeds=self.runs, seed=self.seed, checkpoints=self.parts)
        recipe["steps"] = getattr(self, f"{kernel}_steps")
        if kernel == "linear":
            recipe |= dict(learning_rate=min(0.005, 0.016 / depth), clip=0.1, beta_2=0.99)
            shape = dict(normalise_prompt=True)
        else:
            recipe |= dict(learning_rate=0.003)
            shape = dict(key_width=self.width // self.heads, width=self.width, init_scale=0.5)
        shape |= dict(heads=self.heads, noise_std=self.noise_std, training=recipe)
        spec = dense_spec(kernel, self.d, self.n, depth, **shape)
        return replace(spec, task=replace(spec.task, sparsity=sparsity_of(self, prior)))


def name(kernel: str, prior: str, depth: int) -> str:
    return f"{kernel}, {prior}, depth {depth}"


def sparsity_of(config, prior: str) -> int | None:
    return config.sparsity if prior == "sparse" else None


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        sparsity=1,
        depths=(1, 2),
        width=4,
        linear_steps=4,
        softmax_steps=4,
        batch=4,
        parts=2,
        runs=2,
        prompts=4,
        limits=Limits(1, 2, steps=10, restarts=2, copies=4, d=2, depth=2, runs=2, pairs=16),
    ),
    "laptop": Config(depths=(1, 2, 4)),
    "paper": Config(linear_steps=5000, softmax_steps=3000, prompts=512, seed=1),
}
