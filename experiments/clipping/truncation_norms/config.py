"""Settings and criteria of `truncation_norms`, fixed before its first run."""

from dataclasses import dataclass

from experiments.clipping.linear_models import PAPER, SMOKE, Linear
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config(Linear):
    """Every truncation of one matrix of one layer: of random stacks, and of trained ones."""

    scale: float = 0.5  # of random weights: entries of variance scale²/e
    seeds: int = 16
    draws: int = 64  # of weights and demonstrations for each seed, of prompts for each stack
    seed: int = 0
    # Criteria.
    rounding: float = 1e-9  # relative growth above which a norm counts as risen
    visible: float = 0.05  # share of draws in which a norm rises that is no accident
    rarely: float = 0.05  # share up to which "truncation lowers it" may still be said
    exact: float = 1e-9  # for the counterexample's numbers

    def __post_init__(self):
        super().__post_init__()
        for name in ("seeds", "draws"):
            checks.between(self, name, 2, None)
        for name in ("scale", "rounding", "visible", "rarely", "exact"):
            checks.positive(self, name)
        checks.seed(self, "seed")


_A2, _HERE = "A2 (2406.03768)", "derived here; THEORY I.2.7"
_SHARE = "mean over seeds of the share of draws in which it rises"
_OVERALL = "mean over seeds of the share of draws, matrices, layers and ranks in which it rises"
# Source, statement, what is averaged over seeds or runs, and its bound: a field, or a number.
CLAIMS = {
    "bounds": (
        f"{_A2}, Examples 1 to 3",
        "The upper bound UB of a layer falls, whichever of its W_V, W_K and W_Q is truncated",
        f"{_SHARE}, at the worst matrix,",
        "at_most",
        0.0,
    ),
    "mlp": (
        f"{_A2}, Example 4",
        "|W_MLP ΔW| falls when W_MLP is truncated, as its bound does",
        f"{_SHARE}",
        "at_most",
        0.0,
    ),
    "mlp_with_residuals": (
        f"{_A2}, Example 4 for a block with residuals",
        "|ΔW + W_MLP + W_MLP ΔW| falls too",
        f"{_SHARE}",
        "at_most",
        "rarely",
    ),
    "provable": (
        _HERE,
        "|G_t| never rises with W_V at its own layer, with W_Q and W_Kᵀ W_Q at the first",
        f"{_SHARE}, at the worst of these,",
        "at_most",
        0.0,
    ),
    "provable_when_trained": (
        _HERE,
        "In trained stacks, too, these and the upper bounds never rise",
        "mean over runs of the share of prompts in which it rises, at the worst of these,",
        "at_most",
        0.0,
    ),
    "unprovable": (
        _HERE,
        "|G_t| does rise with W_K anywhere, with W_Q and W_Kᵀ W_Q at later layers",
        f"{_SHARE}, at the one where it is least,",
        "at_least",
        "visible",
    ),
    "own": (
        f"{_A2}, Remark 4",
        "Truncating W_V, W_K or W_Q lowers the norm of its own G_t",
        _OVERALL,
        "at_most",
        "rarely",
    ),
    "sum": (
        f"{_A2}, Remark 4 and Theorem 2",
        "Truncating W_V, W_K or W_Q lowers Σ|G_t|², which the bound contains",
        _OVERALL,
        "at_most",
        "rarely",
    ),
    "sum_when_trained": (
        f"{_A2}, Remark 4 and Theorem 2",
        "Truncating w_pv or w_kq of a trained stack lowers Σ|G_t|²",
        "mean over runs of the share of prompts, matrices, layers and ranks in which it rises",
        "at_most",
        "rarely",
    ),
    "typical": (
        "derived here",
        "In the typical draw Σ|G_t|² falls all the same, whatever is truncated",
        "mean over seeds of the median log(after / before), at the worst matrix, layer and rank,",
        "at_most",
        0.0,
    ),
    "deep_is_steady": (
        f"{_A2}, Remark 5",
        "The deeper the layer that is truncated, the less Σ|G_t|² moves",
        "mean over seeds of |median log(after / before)|, last layer - first layer,",
        "at_most",
        0.0,
    ),
    "counterexample": (
        _HERE,
        "Truncating the W_K that is written down there raises |G| from 0.1 to 1.0",
        "the largest distance of the two norms to 0.1 and 1.0",
        "at_most",
        "exact",
    ),
}

TIERS = {
    "smoke": Config(**SMOKE, seeds=2, draws=4),
    "laptop": Config(),
    "paper": Config(**PAPER, seeds=32, draws=1024),
}
