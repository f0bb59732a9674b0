"""The sizes of `order`: of new orders, of places in a prompt, and of rules that sort."""

from dataclasses import dataclass
from typing import Annotated

from experiments.descent.specs import SOFTMAX, spec_of
from experiments.models.named import Named, choose_pairs
from experiments.models.specs import Spec, dense_spec
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between, one_of

KINDS = ("linear", "softmax", "descent")  # random, random, and constructed linear attention
CAUSAL = "causal attention"  # the name of a model, as SOFTMAX is
TRAINED = "trained, causal"  # one of those that are asked with a demonstration in every place
ASKED = (TRAINED, "trained, no mask", "untrained, causal", "descent, causal")
RULES = ("easy to hard", "hard to easy", "small to large step", "large to small step")
RULES += ("nearest last", "nearest first")


MODELS = choose_pairs((CAUSAL, SOFTMAX))


@dataclass(frozen=True)
class Place(Bounded):
    """Prompts in which one demonstration has the query's covariates and its label, exact or as
    noisy as those in training, asked with it in every place; and prompts as in training."""

    models: Named = MODELS  # trained models, by name
    prompts: Annotated[int, at_least(4)] = 1000  # of each run, the same for all places
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        causal, free = (spec_of(self, name) for name in (CAUSAL, SOFTMAX))
        keys = causal.architecture.keys, free.architecture.keys
        if keys != ("causal", "demonstrations") or causal.task != free.task:
            raise ValueError("choose a model with a causal mask and one without, of one task")


@dataclass(frozen=True)
class Rules(Bounded):
    """Causal stacks, constructed and trained, asked with sorted demonstrations."""

    d: Annotated[int, between(1, 32)] = 5
    n: Annotated[int, at_least(2)] = 16
    noise_std: Annotated[float, POSITIVE] = 0.5  # of the labels, in training and in the test
    depth: Annotated[int, between(2, 8)] = 3
    heads: Annotated[int, between(1, 8)] = 2
    # Kernels of the attention, a trained stack each.
    kernels: Annotated[tuple[str, ...], one_of("linear", "softmax")] = ("linear", "softmax")
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
        if self.shared:
            task, training = self.shared.task, self.shared.training
            ours, its = (self.d, (self.n,), self.noise_std), (task.d, task.lengths, task.noise_std)
            if ours != its or self.shared.architecture.keys != "causal":
                raise ValueError(f"shared = {self.shared}: choose a causal model of {ours}")
            checks.between(self, "runs", 2, training.seeds)

    @property
    def models(self) -> Named:
        """The trained stacks, by name."""
        training = {name: getattr(self, name) for name in ("steps", "batch", "learning_rate")}
        training |= dict(seeds=self.runs, seed=self.seed)
        rest = dict(heads=self.heads, key_width=self.d + 1, keys="causal", init_scale=0.5)
        rest |= dict(noise_std=self.noise_std, training=training)
        specs = {
            kernel: dense_spec(kernel, self.d, self.n, self.depth, **rest)
            for kernel in self.kernels
        }
        specs |= {"softmax": self.shared} if self.shared else {}
        return tuple((f"trained {kernel}", specs[kernel]) for kernel in self.kernels)


@dataclass(frozen=True)
class Config(Bounded):
    """Predictions of random and constructed causal stacks for demonstrations in many orders."""

    d: Annotated[int, between(1, 64)] = 4
    n: Annotated[int, at_least(2)] = 16
    noise_std: Annotated[float, POSITIVE] = 0.5
    depth: Annotated[int, between(2, 8)] = 4
    heads: Annotated[int, at_least(1)] = 2
    key_width: Annotated[int, at_least(1)] = 4  # of a head
    scale: Annotated[float, POSITIVE] = 1.0  # of random weights, times 1 / √inputs
    runs: Annotated[int, at_least(2)] = 32
    prompts: Annotated[int, at_least(2)] = 16  # for each run
    # Orders of each prompt, and as many other draws of its demonstrations.
    orders: Annotated[int, at_least(2)] = 16
    seed: Seed = 1
    place: Place = Place()  # one demonstration at each place
    rules: Rules = Rules()  # orders chosen by a rule

    @property
    def models(self) -> Named:
        """All trained models, by name."""
        return (*self.place.models, *self.rules.models)


_SMALL = dict(d=2, n=4, depth=2, heads=1, runs=2)
TIERS = {
    "smoke": Config(
        **_SMALL,
        key_width=2,
        prompts=2,
        orders=2,
        place=Place(choose_pairs((CAUSAL, SOFTMAX), small=True), prompts=8),
        rules=Rules(
            **_SMALL, kernels=("softmax",), random_orders=2, steps=4, batch=4, test_prompts=8
        ),
    ),
    "laptop": Config(),
}
