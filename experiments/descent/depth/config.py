"""The sizes and the statements of `depth`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

COVARIANCES = ("identity", "rotated")
ALGORITHMS = ("gradient descent", "without the last demonstration", "preconditioned", "GD++")


@dataclass(frozen=True)
class Config:
    """L trained layers beside L steps of four algorithms with tuned step sizes."""

    d: int = 5
    n: int = 20
    max_depth: int = 4
    runs: int = 12
    steps_per_layer: int = 600  # a stack of L layers is trained for L times as many
    batch: int = 128
    # "tokens", or "moments": the same distribution at a cost that does not depend on n, from
    # another random stream.
    prompts: str = "tokens"
    learning_rate: float = 0.1  # of one layer; L layers are trained at an L-th of it
    init_scale: float = 0.1
    coarse_prompts: int = 1024  # on which step sizes are tuned from several starts,
    tuning_prompts: int = 16_384  # and on which the best of these are tuned further
    test_prompts: int = 20_000
    seed: int = 1
    # Criteria.
    ratio_to_descent: float = 1.02  # trained risk at most this multiple of tuned GD's
    ratio_to_plus_plus: float = 1.05  # trained and tuned GD++ agree within this factor
    distance: float = 0.10  # of a learned matrix to a multiple of its predicted shape
    settled: float = 0.10  # a share of its risk below which a Gauss-Newton step changes nothing
    settled_runs: int = 9  # at a depth and covariance, at least, to judge those alone

    def __post_init__(self):
        checks.between(self, "d", 1, 64)
        checks.between(self, "n", 2, None)  # one of the algorithms drops a demonstration
        checks.between(self, "max_depth", 1, 8)
        checks.between(self, "runs", 2, None)
        for name in ("steps_per_layer", "batch", "coarse_prompts", "test_prompts"):
            checks.between(self, name, 1, None)
        checks.between(self, "tuning_prompts", self.coarse_prompts, None)
        checks.between(self, "settled_runs", 2, None)
        for name in ("learning_rate", "init_scale", "distance", "settled"):
            checks.positive(self, name)
        checks.between(self, "ratio_to_descent", 1, None)
        checks.between(self, "ratio_to_plus_plus", 1, None)
        checks.one_of(self, "prompts", ("tokens", "moments"))
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        max_depth=2,
        runs=2,
        steps_per_layer=10,
        batch=8,
        coarse_prompts=32,
        tuning_prompts=64,
        test_prompts=64,
    ),
    "laptop": Config(),
    # 20 000 steps a layer on batches of 4 096: the effort, though not the optimiser, of the public
    # experiments on this question (docs/theory, "Public experiments").
    "paper": Config(steps_per_layer=20_000, batch=4096, runs=16),
}


def statements(config) -> tuple[Statement, ...]:
    return (*about_descent(config), *about_plus_plus(config), *about_shapes(config))


# Stacks explode on rare prompts, and the mean over runs with them.
MEDIAN = "statistic changed after a first run: it was the mean"
TUNED = "reference tuned further: on 1024 prompts alone trained stacks beat it by a tenth"
RATIO = "the risk ratio, trained over tuned, at the worst depth and covariance"
FAR = "most of them are far from trained: says nothing of stacks that are"


def fresh(config, *changes: str) -> str:
    return "; ".join([f"{config.runs} fresh runs since a first look at 8", *changes])


def settled(config, source, id, says, measured, *changes, **bounds) -> Statement:
    """A statement about the runs whose training has settled, where enough have."""
    return Statement(
        f"{id}_settled",
        source,
        says,
        f"{measured} with {config.settled_runs} settled runs, over these,",
        "median",
        **bounds,
        note=f"settled: a Gauss-Newton step from half of the prompts changes the risk on the other "
        f"half by less than {config.settled:g} of it",
        revision=fresh(config, "added after a first run, in which few were trained", *changes),
    )


def about_descent(config) -> tuple[Statement, ...]:
    source = "von Oswald et al. 2212.07677, in our setting"
    says = "predict at least as well as L tuned steps of gradient descent"
    at_most = config.ratio_to_descent
    changes = fresh(config, MEDIAN)
    return (
        Statement(
            "descent",
            source,
            f"After {config.steps_per_layer} steps a layer our stacks of L layers {says}",
            RATIO,
            "median",
            at_most=at_most,
            note=FAR,
            revision=changes,
        ),
        settled(
            config,
            source,
            "descent",
            f"L layers whose training has settled {says}",
            RATIO,
            at_most=at_most,
        ),
        Statement(
            "every_demonstration",
            "derived here",
            "A descent baseline that drops the last demonstration is worse than one that does not",
            "mean difference of squared errors on the same prompts, where it is least clear,",
            "estimate",
            at_least=0.0,
            note="the depth and covariance with the least difference for its error",
            revision="fresh prompts since a first look; tuned further",
        ),
    )


def about_plus_plus(config) -> tuple[Statement, ...]:
    source = "von Oswald et al. 2212.07677; Ahn et al. 2306.00297; in our setting"
    bounds = dict(at_least=1 / config.ratio_to_plus_plus, at_most=config.ratio_to_plus_plus)
    return (
        Statement(
            "plus_plus",
            source,
            f"After {config.steps_per_layer} steps a layer our stacks have the risk of tuned GD++",
            RATIO,
            "median",
            **bounds,
            note=FAR,
            revision=fresh(config, MEDIAN, TUNED),
        ),
        settled(
            config,
            source,
            "plus_plus",
            "Stacks whose training has settled have the risk of tuned GD++, and no less",
            RATIO,
            TUNED,
            **bounds,
        ),
    )


def about_shapes(config) -> tuple[Statement, ...]:
    source = "Ahn et al. 2306.00297, in our setting"
    distance = "the distance to that shape at the worst layer, depth and covariance"
    return (
        Statement(
            "shapes",
            source,
            f"After {config.steps_per_layer} steps a layer our stacks have A_l ∝ Σ^{{-1}}, B_l ∝ I",
            distance,
            "median",
            at_most=config.distance,
            note=FAR,
            revision=fresh(config, MEDIAN),
        ),
        settled(
            config,
            source,
            "shapes",
            "Where training has settled, the learned matrices are A_l ∝ Σ^{-1} and B_l ∝ I",
            distance,
            at_most=config.distance,
        ),
    )
