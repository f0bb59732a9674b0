"""What `truncation_norms` judges."""

import numpy as np

from experiments.clipping.truncation_norms.config import MOVEMENTS, READINGS
from experiments.clipping.truncation_norms.rises import (
    factored,
    layer_means,
    mlp_rises,
    norm_rises,
)
from lsa_lab.judging.statements import Statement, grid

RARELY = 0.05  # share of draws up to which "truncation lowers it" may still be said
A2 = "A2 (2406.03768)"
SHARE = "the share of draws in which it rises"
FRESH = "32 fresh seeds, 16 before"
FRESH_RUNS = "16 fresh runs, 10 before"
CONTROLS = 'A2 says "controls" of |G_t|, and "decreases" of its upper bound alone, a theorem here'


def last_less_first(dataset, movement, kind) -> np.ndarray:  # [S] or [R]
    """How a layer's movement of the sum differs between the last layer and the first."""
    rows = layer_means(factored(dataset)[f"{kind}_{movement}"])
    return rows[:, -1] - rows[:, 0]


def explained(dataset) -> np.ndarray:  # [R]
    """What the share of touched terms accounts for, of the logarithm by which the last layer moves
    the sum less than the first."""
    moves = layer_means(factored(dataset).trained_moves)
    return np.log(dataset.trained_share.values[:, -1]) / np.log(moves[:, -1] / moves[:, 0])


def statements(config) -> tuple[Statement, ...]:
    scale = f"random entries of variance {config.scale:g}²/e; the share depends on it"
    return (*_about_updates(scale), *_about_depth())


def _about_updates(scale):
    kinds = {
        "random": dict(
            over="seeds",
            draws="draws",
            redrawn=FRESH,
            matrices="W_V, W_K or W_Q",
            note=f"{CONTROLS}; {scale}",
        ),
        "trained": dict(
            over="runs",
            draws="prompts",
            redrawn=FRESH_RUNS,
            matrices="w_pv or w_kq of a trained stack",
            note=CONTROLS,
        ),
    }
    norms = {
        ("own", "random"): dict(where="Remarks 4 and 6", what="the norm of its own G_t"),
        ("sum", "random"): dict(
            where="Remark 6 and Theorem 2",
            what="Σ|G_t|², which the bound contains",
        ),
        ("sum", "trained"): dict(where="Remark 6 and Theorem 2", what="Σ|G_t|²"),
    }
    return (
        Statement(
            "norm_falls",
            f"{A2}, {{where}}, our reading, in our setting",
            "Truncating {matrices} lowers {what}",
            "the share of {draws}, matrices, layers and ranks in which it rises",
            at_most=RARELY,
            over="{over}",
            note="{note}",
            redrawn="{redrawn}",
            sample=norm_rises,
            cells=grid("own - sum sum_when_trained", norm=("own", "sum"), kind=kinds),
            words=lambda norm, kind: kinds[kind] | norms[norm, kind],
            message="Truncating a matrix of a random or a trained stack lowers |G_t| of its layer "
            "and Σ|G_t|²",
        ),
        Statement(
            "mlp_with_residuals",
            f"modelled on {A2}, Example 4",
            "|ΔW + W_MLP + W_MLP ΔW|, the update of a block with residuals, falls as W_MLP is cut",
            SHARE,
            at_most=RARELY,
            over="seeds",
            note="A2 has |W_MLP ΔW|, which never rises: a theorem here",
            redrawn=FRESH,
            sample=lambda dataset: mlp_rises(dataset, READINGS[1]),
        ),
    )


def _about_depth():
    movements = {
        "moves": dict(
            less="less Σ|G_t|² moves",
            size="the mean |log(after / before)| over draws",
            verb="moves",
        ),
        "spread": dict(
            less="less the change of Σ|G_t|² varies",
            size="the deviation of log(after / before)",
            verb="varies",
        ),
    }
    kinds = {
        "random": dict(of="", over="seeds", redrawn=FRESH, where="last − first"),
        "trained": dict(of=" of trained stacks", over="runs", redrawn=FRESH_RUNS, where="trained"),
    }

    def words(movement, kind):
        first = (movement, kind) == ("moves", "random")
        revision = "it was |median log ratio|, which cancels" if first else "added"
        return movements[movement] | kinds[kind] | dict(revision=revision)

    return (
        Statement(
            "touched_explains",
            f"{A2}, Remark 5, our reading, in our setting",
            "That a deep layer of trained stacks moves Σ|G_t|² less is for the most part that it "
            "touches fewer of its terms",
            "log(share of the sum that the last layer touches) over log(how far the sum moves with "
            "the last layer / with the first)",
            at_least=0.5,
            note="the null of deep_is_steady: a layer leaves the terms before it as they are",
            revision="added",
            sample=explained,
        ),
        Statement(
            "deep_changes_less",
            f"{A2}, Remark 5, our reading, in our setting",
            "The deeper the layer{of} that is truncated, the {less}",
            "{size}, last layer - first layer",
            at_most=0.0,
            over="{over}",
            revision="{revision}",
            redrawn="{redrawn}",
            sample=last_less_first,
            cells=grid(
                "deep_is_steady deep_is_steady_when_trained "
                "deep_varies_less deep_varies_less_when_trained",
                movement=MOVEMENTS,
                kind=kinds,
            ),
            words=words,
            message="The deeper the layer that is truncated, the less Σ|G_t|² moves, and the less "
            "its change varies, in random and in trained stacks",
        ),
    )
