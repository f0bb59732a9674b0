"""The sizes of `bayes_flows`, and the stacks that follow from them."""

from dataclasses import dataclass, replace
from typing import Annotated

from experiments.models.named import Named
from experiments.models.regression import dense
from experiments.models.specs import KERNELS, Spec
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

PRIORS = ("dense", "sparse")  # of the task: all of its weights N(0, 1), or some of them

Count, Several = Annotated[int, at_least(1)], Annotated[int, at_least(2)]


@dataclass(frozen=True)
class Config(Bounded):
    """Stacks of each kernel, prior and depth along their training, and the Bayes rule of the prior
    on the same prompts."""

    d: Annotated[int, between(1, 64)] = 4
    n: Several = 16  # demonstrations of a prompt, in training and in the test
    sparsity: Annotated[int, between(1, "d")] = 2  # weights that are not zero under a sparse prior
    noise_std: Annotated[float, POSITIVE] = 1.0  # of the labels
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
            shape = dict(own_units=True)
        else:
            recipe |= dict(learning_rate=0.003)
            shape = dict(key_width=self.width // self.heads, width=self.width, init_scale=0.5)
        shape |= dict(heads=self.heads, noise_std=self.noise_std, training=recipe)
        spec = dense(kernel, self.d, self.n, depth, **shape)
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
    ),
    "laptop": Config(depths=(1, 2, 4)),
    "paper": Config(linear_steps=5000, softmax_steps=3000, prompts=512, seed=1),
}
