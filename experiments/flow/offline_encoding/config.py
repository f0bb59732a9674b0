"""The sizes of `offline_encoding`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named, choose_pairs
from experiments.models.specs import Spec, restored
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least, between

# By Eq. 2 of one layer, by all layers of each demonstration alone, or of the whole pool together.
FLOWS = ("Eq. 2", "alone", "together")
RULES = (*FLOWS, "similarity", "random")
WAYS = ("Eq. 2, encoded", "pool, encoded", "pool, online")  # of a query to meet a pool

NAMES = ("linear attention",)
MODELS = choose_pairs(NAMES)
Several = Annotated[int, at_least(2)]


@dataclass(frozen=True)
class Config(Bounded):
    """Demonstrations chosen from a pool for one query after another, by flows in a trained model.

    The pool is in units of its own, in which the model reads it.
    """

    models: Named = MODELS  # trained linear attention
    pool: Several = 64  # demonstrations to select from
    queries: Several = 32  # for one pool, of one task
    pools: Several = 32  # of each run
    # Demonstrations that are selected: as many as in training.
    shots: Annotated[int, between(1, "pool")] = 16
    runs: Several = 9  # each with a seed of the training of its own
    large: Several = 4096  # demonstrations of the pool in which costs are counted
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "runs", 2, spec_of(self).training.seeds)


def spec_of(config) -> Spec:
    """The trained linear attention of a config, of this code or out of a result."""
    ((_, spec),) = config.models
    return restored(spec)


TIERS = {
    "smoke": Config(
        choose_pairs(NAMES, small=True), pool=8, queries=4, pools=2, shots=4, runs=2, large=16
    ),
    "laptop": Config(),
    "paper": Config(pool=256, queries=64, pools=64),
}
