"""The sizes of `heads_beyond_d`, and where its models have their heads."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import MODELS, Named, named
from experiments.models.specs import Spec, restored
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least

SINGLE, FIRST, FULL = ("single", "first", "full")  # where a row has more heads than one


def _named(tier: str) -> Named:
    return named(tier, [name for name in MODELS[tier] if name.startswith("size ")])


_MODELS = _named("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """Models with one head a layer, with h in the first layer, and with h in all."""

    models: Named = _MODELS  # trained models, one row of heads each, by name
    retrain: bool = False  # train again instead of reading committed weights
    # Demonstrations in a test prompt.
    shots: Annotated[tuple[int, ...], at_least(2)] = (8, 16, 32, 64, 128)
    judged: int = 16  # the number of demonstrations at which claims are judged
    test_prompts: Annotated[int, at_least(2)] = 2048
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        if len({spec.task for _, spec in self.models}) != 1:
            raise ValueError("models: choose at least one, all of one task")
        if {*counts(self)} != {FIRST, FULL}:
            raise ValueError("models: choose rows of fewer heads than covariates, as many and more")
        checks.one_of(self, "judged", self.shots)


def kind_of(spec: Spec) -> tuple[str, int]:
    """Where a model of one row has its heads, and how many."""
    (row,) = spec.architecture.variants
    return SINGLE if max(row) == 1 else FULL if row[-1] > 1 else FIRST, row[0]


def counts(config) -> dict[str, tuple[int, int, int]]:
    """For heads in the first layer and in all: the numbers next below d, d, and next above."""
    specs = [restored(spec) for _, spec in config.models]
    d, numbers = specs[0].task.d, {}
    for kind in (FIRST, FULL):
        own = {heads for where, heads in map(kind_of, specs) if where in (kind, SINGLE)}
        if d in own and min(own) < d < max(own):
            numbers[kind] = (max(h for h in own if h < d), d, min(h for h in own if h > d))
    return numbers


TIERS = {
    "smoke": Config(models=_named("smoke"), shots=(4, 8, 16), judged=8, test_prompts=32),
    "laptop": Config(),
    "paper": Config(models=_named("paper"), test_prompts=4096),
}
