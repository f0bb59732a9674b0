"""The sizes and the statements of `matching_is_exact`."""

from dataclasses import dataclass
from functools import partial

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

PATHS = ("proxy", "descent")  # minibatches of Adam; the stack's own full-batch steps
SQUARES = ("free", "matched")  # the mean of y², of which no gradient knows
MATCHING = ("plain", "whitened", "scaled")  # gradients that choose a subset
CLEAN = "for prompts without noise"  # on which softmax is trained; the pools have noise


@dataclass(frozen=True)
class Config:
    """Twins of a pool, matched at C checkpoints and otherwise unlike it, before many models.

    A gap is the root mean square of ŷ(twin) - ŷ(pool) over queries, over that of ŷ(pool).
    """

    d: int = 5
    m: int = 128  # the pool
    n: int = 24  # a twin, and a subset chosen from the pool
    noise_std: float = 0.5
    spectrum: tuple[float, ...] = (0.4, 2.0)  # ends of the covariates' variances
    most: int = 9  # checkpoints, at most
    batch: int = 16  # of the linear proxy, trained for 10 epochs
    rate: float = 0.1  # learning rate of the linear proxy
    depths: tuple[int, ...] = (1, 2, 4, 8)  # of constructed descent
    random_depths: tuple[int, ...] = (1, 2, 4)  # deeper ones overflow
    step: float = 0.2  # size of a step of constructed descent
    random_scale: float = 0.15  # of the random linear stacks' weights
    softmax_depth: int = 2  # layers of the trained softmax stacks
    heads: int = 2
    softmax_steps: int = 800  # training steps of softmax stacks
    softmax_batch: int = 64  # prompts in each of these steps
    learning_rate: float = 0.01
    queries: int = 64  # after each prompt
    random_draws: int = 20  # random subsets of the pool, to compare with
    runs: int = 48
    trained: int = 12  # of the runs have softmax weights of their own
    seed: int = 1
    # Criteria, on medians over runs; none for what is exact, a theorem
    # (docs/theory, "Matched gradients predict alike").
    departs: float = 0.02  # at least this is a gap of softmax, with all moments matched
    nearer: float = 0.9  # a gap of at most this share of another is nearer
    subset: float = 0.3  # gap of a subset that matches d + 1 checkpoints over that of a random one

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 2, 16)
        checks.between(self, "m", 2, None)
        checks.between(self, "n", self.d + 1, self.m)
        checks.between(self, "most", self.d + 1, 32)
        checks.each_positive(self, "spectrum")
        checks.each_between(self, "depths", 1, 32)
        checks.each_between(self, "random_depths", 1, max(self.depths))
        for name in ("heads", "queries", "batch", "random_draws"):
            checks.between(self, name, 1, None)
        for name in ("softmax_steps", "softmax_batch", "softmax_depth"):
            checks.between(self, name, 1, None)
        checks.between(self, "runs", 2, None)
        checks.between(self, "trained", 1, self.runs)
        for name in ("noise_std", "step", "rate", "random_scale", "learning_rate"):
            checks.positive(self, name)
        for name in ("departs", "nearer", "subset"):
            checks.positive(self, name)
        checks.seed(self, "seed")

    @property
    def depth(self) -> int:
        """The softmax stacks' own, for which ``models.regression.of_kernel`` asks."""
        return self.softmax_depth


TIERS = {
    "smoke": Config(
        d=2,
        m=12,
        n=6,
        most=3,
        depths=(1, 2),
        random_depths=(1, 2),
        softmax_depth=1,
        heads=1,
        softmax_steps=2,
        softmax_batch=2,
        queries=4,
        runs=2,
        trained=1,
    ),
    "laptop": Config(),
    # 64 runs from seed 11, half of them trained, left three rows undecided. 192 from seed 12 and 96
    # trained judged all but the rows on scaled gradients, of which a trial saw 96: all is fresh.
    "paper": Config(runs=192, trained=192, seed=13),
    "gpu": Config(
        d=8,
        m=256,
        n=64,
        most=14,
        softmax_depth=4,
        heads=4,
        softmax_steps=20_000,
        softmax_batch=256,
        learning_rate=0.003,
        queries=256,
        runs=64,
        trained=8,
    ),
}


def statements(config) -> tuple[Statement, ...]:
    lesser = (
        "the kinds of weights apart, each run its own; it was the lesser, four runs sharing one"
    )

    again = config.runs > 64  # the paper tier, whose rows other runs of it judged before
    softmax, linear = ((96, 32, 16), (192, 64, 16)) if again else ((16,), (16,))
    median = partial(Statement, statistic="median", redrawn=fresh(config.trained, *softmax))
    rows = []
    for weights, note in (("random", ""), ("trained", CLEAN)):
        rows += [
            median(
                f"softmax_{weights}",
                "derived here",
                f"Softmax departs with {weights} weights: equal moments are not enough",
                "the gap between a set with the pool's moments and the pool",
                at_least=config.departs,
                note=note,
                revision=lesser,
            ),
            median(
                f"softmax_{weights}_nearer",
                "modelled on A3 (2506.04579), its method",
                f"Softmax with {weights} weights is nearer to its pool after a set with the "
                "pool's moments than after one without",
                "the gap with matched moments over that without",
                at_most=config.nearer,
                note=note,
                revision="added",
            ),
        ]
    return (
        *rows,
        median(
            "subset",
            "modelled on A3 (2506.04579), its method",
            "A subset chosen to match d + 1 checkpoints comes near to its pool",
            f"the gap of {max(config.depths)} layers over that of the median random subset",
            at_most=config.subset,
            redrawn=fresh(config.runs, *linear),
        ),
        *whitened(config, again),
        *over_scaled(config, again),
    )


def fresh(runs: int, *before: int) -> str:
    *most, last = map(str, before)
    return f"{runs} fresh runs, {', '.join(most) + ' and ' if most else ''}{last} before"


def whitened(config, again: bool) -> list[Statement]:
    """Rows on whitened gradients, which were added before any run had them.

    Of the earlier runs 48 are the laptop tier's, 12 of them with softmax.
    """
    row = partial(
        Statement,
        source="modelled on A3 (2506.04579), its method",
        statistic="median",
        revision="added, with the rule, to runs that others had judged",
        redrawn=fresh(config.runs, 192, 64, 48) if again else "",
    )
    deep = f"the gap of {max(config.depths)} layers"
    return [
        row(
            "whitened_subset",
            says="A subset chosen by whitened gradients at d + 1 checkpoints comes near to it",
            measured=f"{deep} over that of the median random subset",
            at_most=config.subset,
        ),
        row(
            "whitened_nearer",
            says="It comes nearer than the one that plain gradients choose",
            measured=f"{deep} over that after plain matching",
            at_most=config.nearer,
        ),
        row(
            "whitened_softmax",
            says="So it does before softmax with trained weights",
            measured="the gap over that after plain matching",
            at_most=config.nearer,
            note=CLEAN,
            redrawn=fresh(config.trained, 96, 32, 12) if again else "",
        ),
    ]


def over_scaled(config, again: bool) -> list[Statement]:
    """Rows on what whitening adds to units: "nearer" has the bound that it has in the rows above.

    A trial had 96 runs of an earlier paper tier; those of the laptop tier it did not have.
    """
    row = partial(
        Statement,
        source="derived here",
        statistic="median",
        at_most=config.nearer,
        revision="added after a trial, in which scaling alone gave a part of the gain over plain "
        "matching",
    )
    scaled = "over that after matching of gradients whose entries have one size"
    return [
        row(
            "whitened_over_scaled",
            says="It comes nearer than the one that merely scaled gradients choose: whitening is "
            "more than units",
            measured=f"the gap of {max(config.depths)} layers {scaled}",
            redrawn=fresh(config.runs, 96) if again else "",
        ),
        row(
            "whitened_over_scaled_softmax",
            says="So it does before softmax with trained weights: whitening is more than units",
            measured=f"the gap {scaled}",
            note=CLEAN,
            redrawn=fresh(config.trained, 96) if again else "",
        ),
    ]
