"""The sizes and the statements of `amplification_limits`."""

from dataclasses import dataclass

from experiments.flow.amplification_limits.statements import statements as statements
from lsa_lab.harness import checks

DIRECTIONS = ("least", "largest")  # change of the log ratio that the ascent seeks
EXAMPLES = ("width 1, w_pv w_kq < 0", "gradient descent", "self-coupling")
SIDES = ("network", "closed form")
MAPS = ("contribution, frozen", "contribution, masked", "flow, not masked")


@dataclass(frozen=True)
class Config:
    """Counterexamples to amplification, found by ascent and by hand, and maps of where it holds.

    The ascent moves the weights of one tied linear layer, two demonstrations and a query. All have
    a fixed length: tokens 1, and |w_kq|_F = |w_pv|_F = √budget. Maps have the stacks, the
    demonstrations and the gain of `amplification`.
    """

    search_d: int = 1  # covariates in the ascent
    search_depth: int = 4  # layers in the ascent
    budgets: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)  # of its weights, as above
    shown: float = 1.0  # one of them: the budget whose counterexample is printed
    lead: float = 0.3  # log ratio that the demonstration ahead has after one layer, at least
    cap: float = 7.0  # changes of the log ratio far beyond are not pursued
    steps: int = 300  # of the ascent
    learning_rate: float = 0.05  # of the ascent
    restarts: int = 16  # of the ascent, at each budget
    copies: int = 64  # of what was found, every number with a relative error
    error: float = 0.05  # the standard deviation of that relative error
    layers: int = 200  # of the examples made by hand
    d: int = 5  # covariates in the maps
    depth: int = 6  # layers in the maps
    # w_kq = |f| cI + √(1 - f²) noise, w_pv the same with the sign of f: f is the feedback.
    feedbacks: tuple[float, ...] = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
    gains: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)  # of the stacks in the maps
    gain: float = 1.0  # of the stacks whose self-couplings are looked at
    runs: int = 16
    pairs: int = 128  # of demonstrations, for each run
    bins: int = 12  # of a self-coupling between -1 and 2
    seed: int = 0
    # Criteria.
    small: float = 0.5  # a change of the log ratio up to which it is left as it is
    generic: float = 0.95  # share of the pairs for which a generic theorem has to be true
    predicts: float = 0.8  # share of the pairs for which a rule of thumb has to be right

    def __post_init__(self):
        checks.kinds(self)
        for name in ("search_d", "d"):
            checks.between(self, name, 1, 64)
        for name in ("search_depth", "depth"):
            checks.between(self, name, 2, 8)
        for name in ("budgets", "gains"):
            checks.each_positive(self, name)
        checks.one_of(self, "shown", self.budgets)
        checks.each_between(self, "feedbacks", -1.0, 1.0)
        if min(self.feedbacks) != -1 or max(self.feedbacks) != 1:
            raise ValueError(
                f"feedbacks = {self.feedbacks!r}: choose -1 and 1 among them; nearest "
                f"{tuple(sorted({-1.0, *self.feedbacks, 1.0}))}"
            )
        for name in ("steps", "copies", "layers", "bins"):
            checks.between(self, name, 1, None)
        for name in ("restarts", "runs", "pairs"):
            checks.between(self, name, 2, None)
        for name in ("lead", "cap", "learning_rate", "error", "gain"):
            checks.positive(self, name)
        checks.between(self, "small", 0, 100)
        for name in ("generic", "predicts"):
            checks.between(self, name, 0, 1)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        search_depth=2,
        budgets=(0.3, 1.0),
        steps=10,
        restarts=2,
        copies=4,
        layers=16,
        d=2,
        depth=2,
        feedbacks=(-1.0, 0.0, 1.0),
        gains=(0.3, 1.0),
        runs=2,
        pairs=16,
        bins=3,
    ),
    "laptop": Config(),
    "paper": Config(
        search_d=4,
        search_depth=8,
        steps=3000,
        learning_rate=0.01,
        restarts=64,
        depth=8,
        runs=64,
        pairs=1024,
        bins=24,
    ),
}
