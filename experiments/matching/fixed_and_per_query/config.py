"""The pools, shares, learners and sizes of `fixed_and_per_query`."""

from dataclasses import dataclass

from experiments.matching.configs import Proxies
from experiments.models.named import Named, choose_pairs

EXACT, TRAINED = ("descent", "ridge"), ("linear attention", "softmax attention")
LEARNERS = (*EXACT, *TRAINED)  # who answers after the chosen demonstrations
MIXED = (*EXACT, TRAINED[1])  # linear attention explodes on prompts chosen for a query
MATCHED = ("matching", "matching, whitened")
RULES = (*MATCHED, "random")  # by which the fixed ones are chosen
KINDS = {"one task": 0.0, "related tasks": 0.5, "own tasks": 1.0}  # how far the tasks are apart
CLEAN, HEAVY = "clean", "heavy covariates"
OUTLIERS = ("few flipped", "many flipped", HEAVY, "heavy noise")  # noisy pools that have them
NOISY_KINDS, NOISY_RULES = (CLEAN, *OUTLIERS), (*MATCHED, "mismatching", "random")

MODELS = choose_pairs(TRAINED)


@dataclass(frozen=True)
class Noisy:
    """Matched subsets of pools in which part of the labels or of the covariates misleads.

    Errors are on queries with Gaussian covariates and targets without noise.
    """

    m: int = 256  # the pool
    # Demonstrations that are chosen.
    sizes: tuple[int, ...] = (20, 40, 80)
    model_size: int = 20  # of which the trained models get so many: those of their training
    # Probability of a label's wrong sign: few, many.
    flips: tuple[float, float] = (0.1, 0.3)
    # Degrees of freedom of Student's t where tails are heavy, variance as before.
    tail: float = 3.0
    # Share of a heavy-tailed pool that counts as its outliers.
    outliers: float = 0.05
    random_draws: int = 4  # random subsets, to compare with
    queries: int = 24  # of each pool
    pools: int = 24  # of each run and kind
    seed: int = 2


@dataclass(frozen=True)
class Config(Proxies):
    """n demonstrations, some of them chosen once, the rest the most similar to each query.

    Pools have clusters, each with weights √(1 - a) w_0 + √a w_c: one task at a = 0, and tasks that
    have nothing in common at a = 1. Both pools and queries keep E|x|² = d, as in training.
    """

    n: int = 20  # demonstrations of a prompt
    # How many of them are the same for all queries.
    fixed: tuple[int, ...] = (0, 5, 10, 15, 20)
    m: int = 256  # the pool
    clusters: int = 4  # of a pool
    separation: float = 2.0  # distance of each cluster's centre from 0
    noise_std: float = 0.5  # of the pool's labels
    random_draws: int = 2  # random fixed parts, to compare with
    queries: int = 6  # of each cluster
    pools: int = 32  # of each run and kind
    models: Named = MODELS  # trained attention that answers too
    runs: int = 9  # as many as the seeds of the models
    seed: int = 4
    noisy: Noisy = Noisy()  # pools in which labels or covariates mislead


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        fixed=(0, 2, 4),
        m=24,
        clusters=2,
        separation=1.0,
        depth=2,
        saves=2,
        random_draws=2,
        queries=2,
        pools=1,
        models=choose_pairs(TRAINED, small=True),
        runs=2,
        noisy=Noisy(m=40, sizes=(4, 8), model_size=4, random_draws=2, queries=2, pools=4),
    ),
    "laptop": Config(),
}
