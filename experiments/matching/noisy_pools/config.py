"""The pools, rules, learners and statements of `noisy_pools`."""

from dataclasses import dataclass
from functools import partial

from experiments.matching.learners import EXACT, learners, tag
from experiments.models.named import Named, named
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

CLEAN, HEAVY = "clean", "heavy covariates"
# What is wrong with a pool, and which of its demonstrations are its outliers.
KINDS = (CLEAN, "few flipped", "many flipped", HEAVY, "heavy noise")
OUTLIERS = {
    "few flipped": "flipped labels",
    "many flipped": "flipped labels",
    HEAVY: "longest covariates",
    "heavy noise": "largest noise",
}
RULES = ("matching", "matching, whitened", "mismatching", "random")
TRAINED = ("linear attention", "softmax attention")


@dataclass(frozen=True)
class Config:
    """Matched subsets of pools in which part of the labels or of the covariates misleads.

    Errors are on queries with Gaussian covariates and targets without noise.
    """

    d: int = 8
    m: int = 256  # the pool
    sizes: tuple[int, ...] = (20, 40, 80)  # demonstrations that are chosen
    model_size: int = 20  # of which the trained models get so many: those of their training
    noise_std: float = 0.5  # of the pool's labels
    flips: tuple[float, float] = (0.1, 0.3)  # probability of a label's wrong sign: few, many
    tail: float = 3.0  # degrees of freedom of Student's t where tails are heavy, variance as before
    outliers: float = 0.05  # share of a heavy-tailed pool that counts as its outliers
    depth: int = 16  # steps of the descent that answers, which a linear stack computes
    step: float = 0.15  # size of each
    epochs: int = 10  # of the linear proxy's training, whose gradients are matched
    batch: int = 64  # examples of the pool in a step of it
    learning_rate: float = 0.1  # of the proxy
    saves: int = 10  # checkpoints of its training
    random_draws: int = 4  # random subsets, to compare with
    queries: int = 24  # of each pool
    pools: int = 24  # of each run and kind
    models: Named = ()  # trained attention that answers too
    runs: int = 9  # as many as the seeds of the models
    seed: int = 2
    # Criteria: ratios in each run, means of logarithms over its pools.
    gain: float = 1.0  # error of matching over that of a random subset: lower
    kept: float = 1.25  # that ratio over the same in clean pools: the gain is kept
    as_many: float = 1.1  # share of outliers among the matched over the pool's: no more
    pool: float = 1.5  # error of matching over that of the whole pool, at the most demonstrations

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.between(self, "m", 2, None)
        checks.each_between(self, "sizes", 2, self.m - 1)
        checks.one_of(self, "model_size", self.sizes)
        checks.each_between(self, "flips", 0, 0.5)
        checks.between(self, "tail", 2.1, None)
        checks.between(self, "outliers", 1 / self.m, 0.5)
        for name in ("depth", "epochs", "batch", "saves", "queries", "pools", "random_draws"):
            checks.between(self, name, 1, None)
        checks.between(self, "runs", 2, None)
        bounds = ("gain", "kept", "as_many", "pool")
        for name in ("noise_std", "step", "learning_rate", *bounds):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        m=40,
        sizes=(4, 8),
        model_size=4,
        depth=2,
        saves=2,
        random_draws=2,
        queries=2,
        pools=4,
        models=named("smoke", TRAINED),
        runs=2,
    ),
    "laptop": Config(models=named("laptop", TRAINED)),
    "paper": Config(models=named("paper", TRAINED), pools=32, runs=36, seed=12),
}


def statements(config) -> tuple[Statement, ...]:
    fresh = f"{config.runs} fresh runs of {config.pools} pools each, 9 of 16 before"
    paper, most, rows = "A3 (2506.04579)", max(config.sizes), []
    for learner in learners(config):
        source, where = f"modelled on {paper}, abstract", "geometric mean of the sizes"
        ratio = partial(Statement, statistic="ratio", redrawn=fresh if learner in EXACT else "")
        if learner not in EXACT:
            source, where = f"{paper}, abstract, in our setting", f"n = {config.model_size}"
        beyond = {} if learner in EXACT else {HEAVY: "random prompts lie outside its training"}
        rows += [
            ratio(
                f"{tag(learner)}_{tag(kind)}",
                source,
                f"Matched demonstrations teach {learner} better than random ones ({kind})",
                f"the error over that of random subsets, {where}",
                at_most=config.gain,
                note=beyond.get(kind, ""),
            )
            for kind in KINDS
        ]
        rows += [
            ratio(
                f"{tag(learner)}_{tag(kind)}_kept",
                f"modelled on {paper}, its method",
                f"{learner.capitalize()} gains as much from matching as in clean pools ({kind})",
                f"the error over that of random subsets, over the same in clean pools, {where}",
                at_most=config.kept,
                note=beyond.get(kind, ""),
            )
            for kind in OUTLIERS
        ]
    rows += [
        Statement(
            f"{tag(kind)}_outliers",
            f"modelled on {paper}, its method",
            f"Matching picks no more of the {outliers} than random choice does ({kind})",
            "their share among the chosen over that in the pool, all pools and sizes together",
            at_most=config.as_many,
            redrawn=fresh,
        )
        for kind, outliers in OUTLIERS.items()
    ]
    rows += [
        Statement(
            f"{tag(kind)}_pool",
            f"modelled on {paper}, its method",
            f"{most} matched demonstrations teach descent nearly as the whole pool does ({kind})",
            f"the error over that of all {config.m}",
            statistic="ratio",
            at_most=config.pool,
            redrawn=fresh,
        )
        for kind in KINDS
    ]
    return tuple(rows)
