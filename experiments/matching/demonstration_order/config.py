"""The rules, models and sizes of `demonstration_order`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named, named
from experiments.models.regression import dense
from experiments.models.specs import Spec
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between, one_of

RULES = (
    "easy to hard",
    "hard to easy",
    "small to large step",
    "large to small step",
    "nearest last",
    "nearest first",
)


@dataclass(frozen=True)
class Config(Bounded):
    """Causal stacks, random, constructed and trained, asked with sorted demonstrations."""

    d: Annotated[int, between(1, 32)] = 5
    n: Annotated[int, at_least(2)] = 16
    noise_std: Annotated[float, POSITIVE] = 0.5  # of the labels, in training and in the test
    depth: Annotated[int, between(2, 8)] = 3
    heads: Annotated[int, between(1, 8)] = 2
    # Kernels of the attention, a trained stack each.
    kernels: Annotated[tuple[str, ...], one_of("linear", "softmax")] = ("linear", "softmax")
    random_scale: Annotated[float, POSITIVE] = 1.0  # of weights that are not trained
    # Random orders of each prompt, with whose mean a rule is compared.
    random_orders: Annotated[int, at_least(2)] = 16
    runs: Annotated[int, at_least(2)] = 24
    steps: Annotated[int, at_least(1)] = 500
    batch: Annotated[int, at_least(1)] = 32
    learning_rate: Annotated[float, POSITIVE] = 0.01
    # Prompts of each run; half choose the best rule, half judge it.
    test_prompts: Annotated[int, at_least(4)] = 1600
    # Share of prompts with the largest error in any order.
    left_out: Annotated[float, between(0, 0.5)] = 0.02
    shared: Spec | None = None  # causal softmax attention in the place of one that this one trains
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        if not self.kernels:
            raise ValueError(f"kernels = {self.kernels!r}: choose 'linear', 'softmax' or both")
        if self.shared:
            task, training = self.shared.task, self.shared.training
            ours, its = (self.d, (self.n,), self.noise_std), (task.d, task.lengths, task.noise_std)
            if ours != its or self.shared.architecture.keys != "causal":
                raise ValueError(f"shared = {self.shared}: choose a causal model of {ours}")
            checks.between(self, "runs", 2, training.seeds)

    @property
    def models(self) -> Named:
        """The trained stacks, by name."""
        return tuple((f"trained {kernel}", self._spec(kernel)) for kernel in self.kernels)

    def _spec(self, kernel: str) -> Spec:
        if kernel == "softmax" and self.shared:
            return self.shared
        training = {name: getattr(self, name) for name in ("steps", "batch", "learning_rate")}
        training |= dict(seeds=self.runs, seed=self.seed)
        heads = dict(heads=self.heads, key_width=self.d + 1, keys="causal", init_scale=0.5)
        sizes = (self.d, self.n, self.depth)
        return dense(kernel, *sizes, noise_std=self.noise_std, training=training, **heads)


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        depth=2,
        heads=1,
        kernels=("softmax",),
        random_orders=2,
        runs=2,
        steps=4,
        batch=4,
        test_prompts=8,
    ),
    "laptop": Config(),
    # The causal attention that experiments share, 1.44 times the risk of ridge regression.
    "paper": Config(
        d=8,
        n=20,
        depth=4,
        heads=4,
        runs=9,
        shared=dict(named("laptop"))["causal attention"],
        seed=2,
    ),
}


def stack_names(config) -> list[str]:
    """Random, constructed and trained."""
    return [*(f"random {kernel}" for kernel in config.kernels), *useful_stacks(config)]


def useful_stacks(config) -> list[str]:
    """The stacks that predict: constructed and trained."""
    return ["descent", *(f"trained {kernel}" for kernel in config.kernels)]
