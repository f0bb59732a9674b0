"""The sizes and the statements of `matching_is_exact`, fixed before its first run."""

from dataclasses import dataclass
from functools import partial

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

PATHS = ("proxy", "descent")  # minibatches of Adam; the stack's own full-batch steps
SQUARES = ("free", "matched")  # the mean of y², of which no gradient knows


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
    most: int = 9  # checkpoints
    batch: int = 16  # of the linear proxy, trained for 10 epochs
    rate: float = 0.1
    depths: tuple[int, ...] = (1, 2, 4, 8)  # of constructed descent
    random_depths: tuple[int, ...] = (1, 2, 4)  # deeper ones overflow
    step: float = 0.2
    random_scale: float = 0.15  # of the random linear stacks' weights
    softmax_depth: int = 2
    heads: int = 2
    softmax_steps: int = 800
    softmax_batch: int = 64
    learning_rate: float = 0.01
    queries: int = 64
    random_draws: int = 20
    runs: int = 16
    trained: int = 4  # weights; pools share them in turn
    seed: int = 0
    # Criteria, on medians over runs, at the worst depth or model.
    exact: float = 1e-10  # at most this is no gap
    clear: float = 1e-3  # at least this is one: a gap one checkpoint before the knee
    departs: float = 0.02  # at least this is a gap of softmax, with all moments matched
    bound: float = 1.0 + 1e-9  # gap of one layer over its bound, at the worst set and query
    subset: float = 0.3  # gap of a subset that matches d + 1 checkpoints over that of a random one

    def __post_init__(self):
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
        for name in ("exact", "clear", "departs", "bound", "subset"):
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
    "paper": Config(
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
    median = partial(Statement, statistic="median")
    here, paper = "derived here", "derived here; A3 (CLG)"
    return (
        median(
            "knee",
            paper,
            "d + 1 matched checkpoints make any depth of descent answer as for the pool",
            "the gap at the worst depth",
            at_most=config.exact,
        ),
        median(
            "before_the_knee",
            paper,
            "d checkpoints do not, where descent has more than one layer",
            "the gap at the depth above one where it is least",
            at_least=config.clear,
        ),
        median(
            "own_path",
            here,
            "On its own path descent of L layers needs only min(L, d + 1)",
            "the gap at the worst depth",
            at_most=config.exact,
        ),
        median(
            "own_path_before",
            here,
            "One checkpoint less of its own path is clearly not enough",
            "the gap at the depth where it is least",
            at_least=config.clear,
            note="reworded after a first run",
        ),
        median(
            "any_stack",
            here,
            "With y² matched too, no random linear stack sees a change",
            "the gap at the worst stack",
            at_most=config.exact,
        ),
        median(
            "square",
            here,
            "No gradient depends on the mean of y²: if it differs, random stacks see a change",
            "the gap at the random stack where it is least",
            at_least=config.clear,
        ),
        median(
            "softmax",
            here,
            "Softmax departs: equal moments are not enough",
            "the gap with random or with trained weights, whichever is less,",
            at_least=config.departs,
        ),
        median(
            "bound",
            here,
            "One layer's gap is at most |Γ⁻¹x| times the gap of mean gradients at 0",
            "the gap over its bound, at the worst subset and query",
            at_most=config.bound,
        ),
        median(
            "subset",
            paper,
            "A subset chosen to match d + 1 checkpoints comes near to its pool",
            f"the gap of {max(config.depths)} layers over that of a random subset",
            at_most=config.subset,
        ),
    )
