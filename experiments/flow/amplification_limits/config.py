"""Settings and criteria of `amplification_limits`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    """Counterexamples to amplification, found by ascent and by hand, and maps of where it holds.

    The ascent moves the weights of one tied linear layer, two demonstrations and a query. All have
    a fixed length: tokens 1, and |w_kq|_F = |w_pv|_F = √budget. Maps have the stacks, the
    demonstrations and the gain of `amplification`.
    """

    search_d: int = 1
    search_depth: int = 4
    budgets: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    shown: float = 1.0  # one of them: the budget whose counterexample is printed
    lead: float = 0.3  # log ratio that the demonstration ahead has after one layer, at least
    cap: float = 7.0  # changes of the log ratio far beyond are not pursued
    steps: int = 300
    learning_rate: float = 0.05
    restarts: int = 16
    copies: int = 64  # of what was found, every number with a relative error
    error: float = 0.05
    layers: int = 200  # of the examples made by hand
    d: int = 5
    depth: int = 6
    # w_kq = |f| cI + √(1 - f²) noise, w_pv the same with the sign of f: f is the feedback.
    feedbacks: tuple[float, ...] = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
    gains: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    gain: float = 1.0  # of the stacks whose self-couplings are looked at
    runs: int = 16
    pairs: int = 128  # of demonstrations, for each run
    bins: int = 12  # of a self-coupling between -1 and 2
    seed: int = 0
    # Criteria.
    small: float = 0.5  # a change of the log ratio up to which it is left as it is
    generic: float = 0.95  # share of the pairs for which a generic theorem has to be true
    exact: float = 0.99  # share of the pairs for which an exact law has to be true
    predicts: float = 0.8  # share of the pairs for which a rule of thumb has to be right
    rounding: float = 1e-10  # relative distance of a network from its closed form
    limit: float = 0.05  # the same where the closed form is that of many small layers

    def __post_init__(self):
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
        for name in ("small", "rounding", "limit"):
            checks.positive(self, name)
        for name in ("generic", "exact", "predicts"):
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

_THEOREM, _HERE = "A1 (2508.00385), Theorem 1", "derived here; THEORY I.1.2"
_FOUND = "median over restarts of"
_RIGHT = "median over runs of the share of pairs with κ > -1 for which it is right"
_GROWS = "median over runs of the share of pairs, each alone, whose ratio grows in every layer,"
# Source, statement, what is measured, and the name of its bounds.
CLAIMS = {
    "theorem_1": (
        _THEOREM,
        "In every linear stack, depth enlarges the ratio of two flows",
        f"{_FOUND} the least change of the log ratio that ascent finds, at the largest budget,",
        "positive",
    ),
    "order": (
        f"modelled on {_THEOREM}",
        "In every linear stack, the demonstration ahead after one layer stays ahead",
        f"{_FOUND} the last log ratio where ascent seeks the least, at the budget shown,",
        "positive",
    ),
    "robust": (
        "derived here",
        "The reversals that ascent finds are no accidents of single numbers",
        f"{_FOUND} the share of copies with errors that reverse the order, too,",
        "generic",
    ),
    "small_weights": (
        "derived here",
        "With small weights nothing amplifies or equalises",
        f"{_FOUND} the largest change of the log ratio, up or down, at the smallest budget,",
        "small",
    ),
    "push": (
        _HERE,
        "With nothing but positive feedback the ratio grows for all pairs",
        f"{_GROWS} at the gain with the fewest,",
        "generic",
    ),
    "pull": (
        _HERE,
        "With nothing but negative feedback it grows for none",
        f"{_GROWS} at the gain with the most,",
        "rare",
    ),
    "kappa_frozen": (
        _HERE,
        "κ_1 > κ_2 decides whether a ratio of contributions grows, of frozen demonstrations",
        _RIGHT,
        "exact",
    ),
    "kappa_moving": (
        "derived here",
        "κ_1 > κ_2 predicts it where demonstrations move",
        _RIGHT,
        "predicts",
    ),
    "width_1": (
        _HERE,
        "Layers of width 1 that pull back reverse the order",
        "the ratio after the last layer",
        "reversed",
    ),
    "width_1_law": (
        _HERE,
        "They follow the law of many small layers",
        "the largest relative distance in any layer",
        "limit",
    ),
    "descent": (
        _HERE,
        "Steps of gradient descent reverse the order",
        "the ratio after the last layer",
        "reversed",
    ),
    "descent_law": (
        _HERE,
        "They follow their closed form",
        "the largest relative distance in any layer",
        "rounding",
    ),
    "coupling": (
        _HERE,
        "Of two frozen demonstrations the one with the larger κ overtakes the other",
        "the ratio of contributions after the last layer",
        "reversed",
    ),
    "coupling_law": (
        _HERE,
        "They follow their closed form",
        "the largest relative distance in any layer",
        "rounding",
    ),
}

MAPS = ("contribution, frozen", "contribution, masked", "flow, not masked")
