"""The sizes and the statements of `truncation_norms`, fixed before its first run."""

from dataclasses import dataclass

from experiments.clipping.linear_config import PAPER, SMOKE, LinearConfig
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

MATRICES = ("W_V", "W_K", "W_Q")
MODULES = (*MATRICES, "merged")  # merged: W_K = I, W_Q = W_Kᵀ W_Q
TRAINED_MODULES = ("W_V", "merged")  # trained stacks have w_pv and w_kq alone
NORMS = ("own", "bound", "later", "sum")  # |G_t|, UB_t, the worst |G| after t, Σ|G|²
READINGS = ("W_MLP ΔW", "ΔW + W_MLP + W_MLP ΔW")  # of an MLP after attention


@dataclass(frozen=True)
class Config(LinearConfig):
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


TIERS = {
    "smoke": Config(**SMOKE, seeds=2, draws=4),
    "laptop": Config(),
    "paper": Config(**PAPER, seeds=32, draws=1024),
}


def statements(config) -> tuple[Statement, ...]:
    paper = "A2 (2406.03768)"
    here = 'derived here; docs/theory, "Norms under truncation"'
    share = "the share of draws in which it rises"
    overall = "the share of draws, matrices, layers and ranks in which it rises"
    return (
        Statement(
            "bounds",
            f"{paper}, Examples 1 to 3",
            "The upper bound UB of a layer falls, whichever of its W_V, W_K and W_Q is truncated",
            f"{share}, at the worst matrix",
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "mlp",
            f"{paper}, Example 4",
            "|W_MLP ΔW| falls when W_MLP is truncated, as its bound does",
            share,
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "mlp_with_residuals",
            f"{paper}, Example 4 for a block with residuals",
            "|ΔW + W_MLP + W_MLP ΔW| falls when W_MLP is truncated, too",
            share,
            at_most=config.rarely,
            over="seeds",
        ),
        Statement(
            "provable",
            here,
            "|G_t| never rises with W_V at its own layer, with W_Q and W_Kᵀ W_Q at the first",
            f"{share}, at the worst of these",
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "provable_when_trained",
            here,
            "In trained stacks, too, these and the upper bounds never rise",
            "the share of prompts in which it rises, at the worst of these",
            at_most=0.0,
        ),
        Statement(
            "unprovable",
            here,
            "|G_t| does rise with W_K anywhere, with W_Q and W_Kᵀ W_Q at later layers",
            f"{share}, at the one where it is least",
            at_least=config.visible,
            over="seeds",
        ),
        Statement(
            "own",
            f"{paper}, Remark 4",
            "Truncating W_V, W_K or W_Q lowers the norm of its own G_t",
            overall,
            at_most=config.rarely,
            over="seeds",
        ),
        Statement(
            "sum",
            f"{paper}, Remark 4 and Theorem 2",
            "Truncating W_V, W_K or W_Q lowers Σ|G_t|², which the bound contains",
            overall,
            at_most=config.rarely,
            over="seeds",
        ),
        Statement(
            "sum_when_trained",
            f"{paper}, Remark 4 and Theorem 2",
            "Truncating w_pv or w_kq of a trained stack lowers Σ|G_t|²",
            "the share of prompts, matrices, layers and ranks in which it rises",
            at_most=config.rarely,
        ),
        Statement(
            "typical",
            "derived here",
            "In the typical draw Σ|G_t|² falls all the same, whatever is truncated",
            "the median log(after / before), at the worst matrix, layer and rank",
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "deep_is_steady",
            f"{paper}, Remark 5",
            "The deeper the layer that is truncated, the less Σ|G_t|² moves",
            "|median log(after / before)|, last layer - first layer",
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "counterexample",
            here,
            "Truncating the W_K that is written down there raises |G| from 0.1 to 1.0",
            "the largest distance of the two norms to 0.1 and 1.0",
            "value",
            at_most=config.exact,
        ),
    )
