"""The sizes of `truncation_norms`."""

from dataclasses import dataclass

from experiments.clipping.clipped_models import linear_stacks
from experiments.models.named import Named

MATRICES = ("W_V", "W_K", "W_Q")
MODULES = (*MATRICES, "merged")  # merged: W_K = I, W_Q = W_Kᵀ W_Q
TRAINED_MODULES = ("W_V", "merged")  # trained stacks have w_pv and w_kq alone
# |G_t|, UB_t, the worst |G| after t, Σ|G|², and of that the terms from t on, which t touches.
NORMS = ("own", "bound", "later", "sum", "touched")
# Of Σ|G|² over draws: the mean |log(after / before)| and the deviation of that log.
MOVEMENTS = ("moves", "spread")
READINGS = ("W_MLP ΔW", "ΔW + W_MLP + W_MLP ΔW")  # of an MLP after attention

MODELS = linear_stacks("laptop")


@dataclass(frozen=True)
class Config:
    """Every truncation of one matrix of one layer: of random stacks, and of trained ones."""

    models: Named = MODELS  # trained models, by name; random stacks are as large
    scale: float = 0.5  # of random weights: entries of variance scale²/e
    seeds: int = 32  # of random stacks
    # Of weights and demonstrations for each seed, of prompts for each trained stack.
    draws: int = 64
    rounding: float = 1e-9  # relative growth above which a norm has risen
    seed: int = 1


TIERS = {
    "smoke": Config(linear_stacks("smoke"), seeds=2, draws=4),
    "laptop": Config(),
    "paper": Config(linear_stacks("paper"), draws=1024),
}
