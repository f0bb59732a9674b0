"""The sizes and the statements of `truncation_norms`, fixed before its first run."""

from dataclasses import dataclass

from experiments.clipping.linear_config import PAPER, SMOKE, LinearConfig
from experiments.clipping.truncation_norms.statements import statements as statements
from lsa_lab.harness import checks

MATRICES = ("W_V", "W_K", "W_Q")
MODULES = (*MATRICES, "merged")  # merged: W_K = I, W_Q = W_Kᵀ W_Q
TRAINED_MODULES = ("W_V", "merged")  # trained stacks have w_pv and w_kq alone
NORMS = ("own", "bound", "later", "sum")  # |G_t|, UB_t, the worst |G| after t, Σ|G|²
SUMMARIES = (
    "rises",
    "typical",
    "largest",
)  # share of draws; median and largest log(after / before)
MOVEMENTS = ("moves", "spread")  # of Σ|G|² over draws: mean |log(after / before)|, deviation of it
READINGS = ("W_MLP ΔW", "ΔW + W_MLP + W_MLP ΔW")  # of an MLP after attention


@dataclass(frozen=True)
class Config(LinearConfig):
    """Every truncation of one matrix of one layer: of random stacks, and of trained ones."""

    scale: float = 0.5  # of random weights: entries of variance scale²/e
    seeds: int = 32  # of random stacks
    draws: int = 64  # of weights and demonstrations for each seed, of prompts for each stack
    seed: int = 1
    # Criteria.
    rounding: float = 1e-9  # relative growth above which a norm counts as risen
    visible: float = 0.05  # share of draws in which a norm rises that is no accident
    rarely: float = 0.05  # share up to which "truncation lowers it" may still be said

    def __post_init__(self):
        super().__post_init__()
        for name in ("seeds", "draws"):
            checks.between(self, name, 2, None)
        for name in ("scale", "rounding", "visible", "rarely"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(**SMOKE, seeds=2, draws=4),
    "laptop": Config(),
    "paper": Config(**PAPER, draws=1024),
}
