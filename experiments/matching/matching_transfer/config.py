"""The rules, the targets and the sizes of `matching_transfer`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named, named
from experiments.models.specs import Task, restored
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between, divides

# Gradients of the linear proxy, of it before training, of a prefix of one layer, moments, gradients
# of the proxy that sees half of the covariates, and of a prefix of the shortest descent; then the
# linear proxy mismatched, and after these rules random subsets.
GRADIENTS = ("linear proxy", "its start", "prefix", "moments", "half proxy", "deep prefix")
RULES = (*GRADIENTS, "mismatched")
SMALL = "one layer"  # the model on which the prefix is trained; the linear proxy's first step
TRAINED = ("linear attention", "softmax attention", "transformer")
SUBSETS = ("all", "random")  # whose ranks are compared

Count = Annotated[int, at_least(1)]


def task_of(config) -> Task:
    """What the trained targets of a config are trained on, of this code or out of a result."""
    return restored(config.models[0][1]).task


@dataclass(frozen=True)
class Config(Bounded):
    """Subsets chosen on small models, used on larger ones, and the reverse."""

    models: Named  # the trained targets
    noise_std: Annotated[float, POSITIVE] = 0.5  # of the labels, in training and in the pool
    m: Annotated[int, between(2, 10_000)] = 256  # the pool
    pools: Count = 4  # of each run
    queries: Count = 32  # of each pool
    random_subsets: Annotated[int, at_least(2)] = 24  # of each pool, to compare with
    # Checkpoints of the linear proxy's descent and of the prefix's training.
    checkpoints: Annotated[int, divides("prefix_steps")] = 10
    prefix_length: Count = 4  # tokens whose gradients a prefix has
    prefix_rate: Annotated[float, POSITIVE] = 0.03  # learning rate of the prefixes
    prefix_steps: int = 200  # training steps of the prefixes
    # Layers of the constructed stacks.
    descents: Annotated[tuple[int, ...], between(1, 64)] = (4, 16)
    runs: Annotated[int, at_least(2)] = 9  # as many as the seeds of the models
    seed: Seed = 2

    def __post_init__(self):
        super().__post_init__()
        if not self.models:
            raise ValueError(f"models: choose some of {', '.join(TRAINED)}")
        checks.between(self, "m", self.n + 1, 10_000)
        for _, spec in self.models:
            if (spec.task.d, *spec.task.lengths) != (self.d, self.n):
                raise ValueError(f"models are trained on d = {self.d} and n = {self.n}")
            checks.between(self, "runs", 2, spec.training.seeds)

    @property
    def d(self) -> int:
        return task_of(self).d

    @property
    def n(self) -> int:
        """Demonstrations in training, and the size of a subset."""
        return max(task_of(self).lengths)


TIERS = {
    "smoke": Config(
        named("smoke", TRAINED[:1]),
        m=12,
        pools=1,
        queries=2,
        random_subsets=3,
        checkpoints=3,
        prefix_length=2,
        prefix_steps=6,
        descents=(2,),
        runs=2,
    ),
    "laptop": Config(named("laptop", TRAINED)),
    "paper": Config(named("paper", TRAINED), pools=8, runs=36, seed=12),
}


def targets(config) -> list[str]:
    """The models that are taught by the chosen subsets, the smallest first."""
    return [
        SMALL,
        *(f"descent, {depth} steps" for depth in config.descents),
        *(name for name, _ in config.models),
    ]
