"""The sizes and the statements of `flow_factors`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

STEPS = ("best for the law", "1/|x|²", "1")  # the first is the model of the statements
QUANTITIES = ("contribution", "flow", "error reduction")
FORMS = ("product", "sum")
SCALES = ("squares", "sizes")  # of the quantities: c², |J|² and the reduction, or their roots
PREDICTORS = ("flow", "contribution", "relevance", "novelty", "relevance + novelty")
# Demonstrations by what is zero: nothing, the relevance s, the novelty r, or both.
KINDS = {"neither": "", "irrelevant": "s = 0", "learned": "r = 0", "both": "s = r = 0"}


@dataclass(frozen=True)
class Config:
    """One demonstration in front of attention that knows some coordinates of the task.

    w ~ N(0, I), of which the weights know ``known`` coordinates; covariates are sparse, E|x|² = 1.
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


TIERS = {
    "smoke": Config(d=4, known=2, draws=1000, runs=2, classes=3),
    "laptop": Config(),
    "paper": Config(draws=1_000_000, runs=64, classes=20),
}


def best_step(config) -> float:
    """1/E|x|⁴: the step with the least mean error after one demonstration, for every ``known``.

    It removes the share (1/E|x|⁴)/d of the error without demonstrations (derived here).
    """
    return 1 / (3 / (config.density * config.d) + (config.d - 1) / config.d)


def statements(config) -> tuple[Statement, ...]:
    paper, own = "A1 (2508.00385)", "derived here"
    relative = "relative to the median one,"
    advantage = "R² over the cells of the best f(s)g(r) less that of the best f(s) + g(r), of"
    correlation = "the rank correlation with the error reduction"
    return (
        Statement(
            "equation_2",
            own,
            "Where weights write to the label alone, the flow to the answer is all of Eq. 2",
            f"the largest difference of the norms, {relative}",
            at_most=config.exact,
        ),
        Statement(
            "contribution",
            own,
            "What one demonstration adds to the answer is its relevance times its novelty",
            f"the largest |c - s r|, {relative}",
            at_most=config.exact,
        ),
        Statement(
            "either_or_contribution",
            own,
            "A demonstration that is irrelevant or learned contributes nothing",
            f"the larger of their two median contributions, {relative}",
            at_most=config.exact,
        ),
        Statement(
            "either_or_flow",
            f"{paper}, on Eq. 2",
            "From a demonstration that is irrelevant or learned no gradient flows",
            f"the smaller of their two median flows, {relative}",
            at_most=config.exact,
        ),
        Statement(
            "flow_is_a_sum",
            own,
            "The flow is a sum of relevance and novelty rather than their product",
            f"{advantage} squared flows",
            at_most=0,
        ),
        Statement(
            "reduction_is_a_product",
            f"{paper}, its open question on the conflict of factors",
            "What a demonstration takes off the error is a product rather than a sum",
            f"{advantage} error reductions, as they are or as roots, whichever is less,",
            at_least=0,
        ),
        Statement(
            "flow_predicts",
            paper,
            "The size of a demonstration's flow predicts what it takes off the error",
            correlation,
            at_least=config.predicts,
        ),
        Statement(
            "contribution_predicts",
            own,
            "The size of its contribution predicts what it takes off the error",
            correlation,
            at_least=config.predicts,
        ),
        Statement(
            "contribution_or_flow",
            own,
            "The contribution predicts the error reduction better than the flow does",
            f"{correlation} of the contribution less that of the flow",
            at_least=0,
        ),
        Statement(
            "helps",
            f"{paper}, read literally",
            "A demonstration that is relevant and new lowers the error",
            "the share of those with s r ≠ 0 that do",
            at_least=config.helps,
        ),
        Statement(
            "unit_step",
            own,
            "One unit step overshoots: it raises the error",
            "the error reduction with η = 1, relative to the error without demonstrations,",
            at_most=0,
        ),
    )
