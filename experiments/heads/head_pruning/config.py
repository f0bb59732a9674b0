"""The sizes of `head_pruning`, and the ways to take heads away."""

import math
from dataclasses import dataclass
from typing import Annotated

from experiments.heads.kinds import mixable_and_own
from experiments.models.named import Named, more_seeds, named
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least

FULL, PRUNED, BEST, FIRST = CHOSEN = ("full", "pruned", "best later heads", "top head of layer 1")
OTHERS, ANY = RANDOM = ("random later heads", "as many at random")
MIXED, TRAINED = "best of all mixings", "trained so"
TREATMENTS = (*CHOSEN, *RANDOM, MIXED, TRAINED)

_NAMES = ("depth 3", "depth 5", "long training", "dense", "narrow keys", "softmax")
_MODELS = named("laptop", _NAMES)


@dataclass(frozen=True)
class Config(Bounded):
    """Trained models with heads taken away, judged on prompts of their own in every run.

    A run is a seed of a model's last, full variant. Heads are chosen, mixed and fitted on other
    prompts than those on which the choice is judged.
    """

    models: Named = _MODELS  # trained models, by name
    retrain: bool = False  # train again instead of reading committed weights
    fitted: tuple[str, ...] = ("depth 3",)  # whose later layers are also fitted anew
    n: Annotated[int, at_least(1)] = 16
    # To measure importance on, and as many others to judge on, for each run.
    prompts: Annotated[int, at_least(1)] = 512
    # Prompts for the search through subsets and mixings, and for greedy pruning.
    search: Annotated[int, at_least(1)] = 256
    # Of one head for each later layer: all are tried, if not more.
    most_choices: Annotated[int, at_least(1)] = 512
    draws: Annotated[int, at_least(1)] = 4  # of each random control
    # Random mixings, of which the best is improved, as is the best head as it is.
    starts: Annotated[int, at_least(1)] = 16
    climbs: Annotated[int, at_least(1)] = 60  # steps that improve them
    fit_steps: Annotated[int, at_least(1)] = 300  # on fresh prompts
    fit_prompts: Annotated[int, at_least(1)] = 128  # in each of these steps
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        mixed, own = mixable_and_own(self.models)
        if not own:
            raise ValueError("models: choose one at least whose heads cannot be mixed")
        if {*self.fitted} - {name for name, _ in mixed}:
            raise ValueError(f"fitted = {self.fitted!r}: choose from models of mixed heads")


def all_are_tried(config, counts) -> bool:
    """Whether the search goes through every choice of one head for each later layer."""
    return math.prod(counts[1:]) <= config.most_choices


TIERS = {
    "smoke": Config(
        models=named("smoke", ("depth 3", "softmax")),
        fitted=("depth 3",),
        n=8,
        prompts=32,
        search=32,
        draws=2,
        starts=2,
        climbs=2,
        fit_steps=2,
        fit_prompts=8,
    ),
    "laptop": Config(),
    "paper": Config(models=more_seeds(_MODELS)),
}
