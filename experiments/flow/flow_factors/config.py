"""Settings and criteria of `flow_factors`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    """One demonstration in front of attention that knows some coordinates of the task.

    w ~ N(0, I), of which the weights know ``known`` coordinates; covariates have few non-zeros,
    and E|x|² = 1.
    """

    d: int = 8
    known: int = 4
    density: float = 0.3  # of the non-zeros of a demonstration
    query_density: float = 0.5
    draws: int = 40_000  # of task, demonstration and query, for each run
    runs: int = 16
    classes: int = 10  # of relevance and of novelty: deciles of those that are not zero
    seed: int = 0
    # Criteria.
    exact: float = 1e-10  # at most this, relative to the typical size, is rounding
    predicts: float = 0.3  # a rank correlation of at least this is a prediction
    helps: float = 0.9  # share of demonstrations that lower the error, if they do as a rule

    def __post_init__(self):
        checks.between(self, "d", 2, 256)
        checks.between(self, "known", 1, self.d - 1)
        for name in ("density", "query_density"):
            checks.positive(self, name)
            checks.between(self, name, None, 1.0)
        checks.between(self, "draws", 100, None)
        checks.between(self, "runs", 2, None)
        checks.between(self, "classes", 2, 50)
        checks.between(self, "predicts", 0.0, 1.0)
        checks.between(self, "helps", 0.0, 1.0)
        checks.positive(self, "exact")
        checks.seed(self, "seed")


_PAPER, _OWN = "A1 (2508.00385)", "derived here"
_ROUNDING = "relative to the median one,"
_ADVANTAGE = "R² over the cells of the best f(s)g(r) less that of the best f(s) + g(r),"
# Source, statement, what is averaged over runs, and its bound: a field of Config, or a number.
CLAIMS = {
    "equation_2": (
        _OWN,
        "Where weights write to the label alone, the flow to the answer is all of Eq. 2",
        f"over runs of the largest difference of the norms, {_ROUNDING}",
        "at_most",
        "exact",
    ),
    "contribution": (
        _OWN,
        "What one demonstration adds to the answer is its relevance times its novelty",
        f"over runs of the largest |c - s r|, {_ROUNDING}",
        "at_most",
        "exact",
    ),
    "either_or_contribution": (
        _OWN,
        "A demonstration that is irrelevant or learned contributes nothing",
        f"over runs of the larger of their two median contributions, {_ROUNDING}",
        "at_most",
        "exact",
    ),
    "either_or_flow": (
        f"{_PAPER}, on Eq. 2",
        "From a demonstration that is irrelevant or learned no gradient flows",
        f"over runs of the smaller of their two median flows, {_ROUNDING}",
        "at_most",
        "exact",
    ),
    "flow_is_a_sum": (
        _OWN,
        "The flow is a sum of relevance and novelty rather than their product",
        f"{_ADVANTAGE} of squared flows",
        "at_most",
        0,
    ),
    "reduction_is_a_product": (
        f"{_PAPER}, its open question on the conflict of factors",
        "What a demonstration takes off the error is a product rather than a sum",
        f"{_ADVANTAGE} of error reductions, as they are or as roots, whichever is less,",
        "at_least",
        0,
    ),
    "flow_predicts": (
        _PAPER,
        "The size of a demonstration's flow predicts what it takes off the error",
        "rank correlation",
        "at_least",
        "predicts",
    ),
    "contribution_predicts": (
        _OWN,
        "The size of its contribution predicts what it takes off the error",
        "rank correlation",
        "at_least",
        "predicts",
    ),
    "contribution_or_flow": (
        _OWN,
        "The contribution predicts the error reduction better than the flow does",
        "rank correlation of the contribution less that of the flow",
        "at_least",
        0,
    ),
    "helps": (
        f"{_PAPER}, read literally",
        "A demonstration that is relevant and new lowers the error",
        "share of those with s r ≠ 0 that do",
        "at_least",
        "helps",
    ),
    "unit_step": (
        _OWN,
        "One unit step overshoots: it raises the error",
        "error reduction with η = 1, relative to the error without demonstrations,",
        "at_most",
        0,
    ),
}

TIERS = {
    "smoke": Config(d=4, known=2, draws=1000, runs=2, classes=3),
    "laptop": Config(),
    "paper": Config(draws=1_000_000, runs=64, classes=20),
}

STEPS = ("best for the law", "1/|x|²", "1")  # the first is the model of the claims
QUANTITIES = ("contribution", "flow", "error reduction")
FORMS = ("product", "sum")
SCALES = ("squares", "sizes")  # of the quantities: c², |J|² and the reduction, or their roots
