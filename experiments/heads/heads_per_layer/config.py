"""The sizes of `heads_per_layer`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named, named
from experiments.models.specs import Spec, restored
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least

LONG = "long training"  # of the first model, if a tier has it

_DEPTHS = ("depth 3", "depth 5")
_MODELS = named("laptop", (*_DEPTHS, LONG))


@dataclass(frozen=True)
class Config(Bounded):
    """Architectures that differ in where their heads sit, at two depths."""

    models: Named = _MODELS  # trained models, by name
    retrain: bool = False  # train again instead of reading committed weights
    # Demonstrations in a test prompt.
    shots: Annotated[tuple[int, ...], at_least(2)] = (8, 16, 32, 64)
    judged: int = 16  # the number of demonstrations at which claims are judged
    test_prompts: Annotated[int, at_least(2)] = 4096
    # On which the step sizes of descent are chosen.
    tuning_prompts: Annotated[int, at_least(2)] = 2048
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        tasks = {spec.task for _, spec in self.models}
        if len(tasks) != 1 or not depths(self):
            raise ValueError("models: choose at least one besides the long training, of one task")
        checks.one_of(self, "judged", self.shots)


def depths(config) -> list[tuple[str, Spec]]:
    """The models that differ in depth alone, by name."""
    return [(name, restored(spec)) for name, spec in config.models if name != LONG]


TIERS = {
    "smoke": Config(
        models=named("smoke", _DEPTHS), shots=(4, 8), judged=8, test_prompts=32, tuning_prompts=32
    ),
    "laptop": Config(),
    "paper": Config(models=named("paper", _DEPTHS)),
}
