"""Settings and criteria of `clipping_and_bound`, fixed before its first run."""

from dataclasses import dataclass

from experiments.clipping.linear_models import PAPER, SMOKE, Linear
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config(Linear):
    """Every truncation of w_kq and of w_pv, layer by layer, in trained stacks and in descent."""

    prompts: int = 128  # of each run, its own
    population: int = 64  # fresh pairs for each prompt
    constructed: int = 8  # sets of prompts on which stacks that descend are looked at
    update_noise: float = 0.01  # c of C = cI, an assumption of the theorem
    largest_loss: float = 16.0  # squared errors are clipped to [0, b], so that R = b/2
    seed: int = 0
    # Criteria.
    rarely: float = 0.05  # share up to which something may still be said to happen always
    majority: float = 0.5  # share from which it may be said to happen as a rule
    rank_correlation: float = 0.5  # over the rates
    exact: float = 1e-9  # relative change that is none

    def __post_init__(self):
        super().__post_init__()
        for name in ("prompts", "population", "constructed"):
            checks.between(self, name, 2, None)
        for name in ("update_noise", "largest_loss", "exact"):
            checks.positive(self, name)
        for name in ("rarely", "majority", "rank_correlation"):
            checks.between(self, name, 0, 1)
        checks.seed(self, "seed")


_A2 = "A2 (2406.03768)"
_CELLS = "mean over runs of the share of matrices, layers and ranks"
_SPEARMAN = "mean over runs, matrices and layers of Spearman's correlation over the ranks kept"
# Source, statement, what is averaged over runs, and its bound: a field of Config, or a number.
CLAIMS = {
    "bound_falls": (
        f"{_A2}, Remark 4 and Theorem 2",
        "Truncating w_kq or w_pv of a trained stack lowers the bound of Theorem 2",
        f"{_CELLS} at which it rises",
        "at_most",
        "rarely",
    ),
    "risk_falls_with_it": (
        f"{_A2}, Remark 4",
        "Where truncation lowers the bound, it lowers the risk",
        f"{_CELLS}, of those with a lower bound, in which the risk is lower",
        "at_least",
        "majority",
    ),
    "ranks_risks": (
        f"{_A2}, Theorem 2 and Remark 4",
        "Over the ranks kept the bound and the risk fall together",
        f"{_SPEARMAN}",
        "at_least",
        "rank_correlation",
    ),
    "ranks_gaps": (
        f"{_A2}, Theorem 2",
        "Over the ranks kept the bound and the generalisation gap fall together",
        f"{_SPEARMAN}",
        "at_least",
        "rank_correlation",
    ),
    "sum_ranks_gaps": (
        f"{_A2}, Theorem 2 and Remark 5",
        "Over the ranks kept Σ|G_t|² and the generalisation gap fall together",
        f"{_SPEARMAN}",
        "at_least",
        "rank_correlation",
    ),
    "least_when_dropped": (
        f"{_A2}, appendix B.6",
        "The bound is least where the layer is dropped",
        "mean over runs of the share of matrices and layers in which it is not",
        "at_most",
        "rarely",
    ),
    "gap_least_when_dropped": (
        f"{_A2}, appendix B.6",
        "Dropping a layer is best for the generalisation gap",
        "mean over runs, matrices and layers of the gap when dropped - the gap unclipped",
        "at_most",
        0.0,
    ),
    "chosen_by_bound": (
        "derived here",
        "The rank at which the bound is least predicts no worse than the whole matrix",
        "mean over runs, matrices and layers of log(risk there / risk unclipped)",
        "at_most",
        0.0,
    ),
    "descent_values": (
        "derived here; THEORY I.2.10",
        "In stacks that descend w_pv has rank 1: cutting it changes nothing, down to rank 1",
        "the largest relative change of bound, Σ|G_t|² and risk",
        "at_most",
        "exact",
    ),
    "descent_bound": (
        f"{_A2}, Remark 4",
        "In stacks that descend, too, the bound and the risk fall together as w_kq is cut",
        f"{_SPEARMAN}",
        "at_least",
        "rank_correlation",
    ),
}


TIERS = {
    "smoke": Config(**SMOKE, prompts=4, population=4, constructed=2),
    "laptop": Config(),
    "paper": Config(**PAPER, prompts=1024, population=256, constructed=16),
}

MODULES = ("w_kq", "w_pv")
MEASURED = {
    "bound": "Theorem 2",
    "sum": "Σ|G|²",
    "upper": "Σ UB",
    "risk": "risk",
    "gap": "gap",
}
