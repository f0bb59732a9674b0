"""The sizes and the statements of `offline_encoding`."""

from dataclasses import dataclass

from experiments.flow.offline_encoding.statements import statements as statements
from experiments.models.named import MODELS
from experiments.models.specs import Spec
from lsa_lab.harness import checks

# By Eq. 2 of one layer, by all layers of each demonstration alone, or of the whole pool together.
FLOWS = ("Eq. 2", "alone", "together")
RULES = (*FLOWS, "similarity", "random")


@dataclass(frozen=True)
class Config:
    """Demonstrations chosen from a pool for one query after another, by flows in a trained model.

    The pool is in units of its own, in which the model reads it.
    """

    model: Spec  # trained linear attention
    pool: int = 64  # demonstrations to select from
    queries: int = 32  # for one pool, of one task
    pools: int = 32  # of each run
    shots: int = 20  # demonstrations that are selected: as many as in training
    runs: int = 9  # each with a seed of the training of its own
    large: int = 4096  # demonstrations of the pool in which costs are counted
    repeats: int = 15  # of a measurement of time
    seed: int = 0
    # Criteria.
    saved: float = 0.1  # operations, or processor time, of one over the other, at most
    ranks: float = 0.9  # a rank correlation of at least this is the same ranking
    same: float = 0.05  # errors within this factor are the same

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "pool", 2, None)
        checks.between(self, "shots", 1, self.pool)
        checks.between(self, "runs", 2, self.model.training.seeds)
        for name in ("queries", "pools", "large", "repeats"):
            checks.between(self, name, 2, None)
        for name in ("saved", "same"):
            checks.positive(self, name)
        checks.between(self, "ranks", 0.0, 1.0)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        MODELS["smoke"]["linear attention"],
        pool=8,
        queries=4,
        pools=2,
        shots=4,
        runs=2,
        large=16,
        repeats=2,
    ),
    "laptop": Config(MODELS["laptop"]["linear attention"]),
    "paper": Config(MODELS["laptop"]["linear attention"], pool=256, queries=64, pools=64),
}
