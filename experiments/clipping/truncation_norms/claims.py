"""What `truncation_norms` judges."""

from typing import NamedTuple

import numpy as np

from experiments.clipping.truncation_norms.config import MATRICES, MODULES, MOVEMENTS, READINGS
from lsa_lab.judging.statements import Statement, grid


class Rises(NamedTuple):
    """How often a norm rises when a matrix is truncated."""

    provable: bool  # that it never does
    random: np.ndarray  # [S]  share of the draws of each seed
    trained: np.ndarray | None  # [R]  share of the prompts of each trained stack


def table_of_rises(dataset) -> dict[str, Rises]:
    """The table in docs/theory, "Norms under truncation": averaged over the ranks and, where there
    are several, the layers."""
    first, later, last = slice(0, 1), slice(1, None), slice(0, -1)

    def rises(provable, norm, module, layers):
        shares = dataset.random_rises.sel(norm=norm, module=module).isel(layer=layers)
        trained = None
        if module in dataset.trained_module:
            trained = dataset.trained_rises.sel(norm=norm, trained_module=module)
            trained = trained.isel(layer=layers).mean(("layer", "rank")).values
        return Rises(provable, shares.mean(("layer", "rank")).values, trained)

    bounds = [rises(True, "bound", name, slice(None)) for name in MODULES]
    trained_bounds = [row.trained for row in bounds if row.trained is not None]
    random_bounds = np.max([row.random for row in bounds], axis=0)
    table = {"UB_t, any matrix": Rises(True, random_bounds, np.max(trained_bounds, axis=0))}
    table["|G_t|, W_V, any t"] = rises(True, "own", "W_V", slice(None))
    table["|G_1|, W_Q"] = rises(True, "own", "W_Q", first)
    table["|G_1|, merged"] = rises(True, "own", "merged", first)
    for i, reading in enumerate(READINGS):
        table[f"|{reading}|"] = Rises(i == 0, mlp_rises(dataset, reading), None)
    table["|G_1|, W_K"] = rises(False, "own", "W_K", first)
    for name in ("W_K", "W_Q", "merged"):
        table[f"|G_t|, {name}, t > 1"] = rises(False, "own", name, later)
    for name in MODULES:
        table[f"a later |G|, {name}"] = rises(False, "later", name, last)
    for name in MODULES:
        table[f"Σ|G|², {name}"] = rises(False, "sum", name, last)
    return table


def mlp_rises(dataset, reading):  # [S]
    return dataset.mlp_rises.sel(reading=reading).mean("rank").values


def norm_rises(dataset, norm, kind):  # [S] or [R]
    """The share in which a norm rises, over all matrices, layers and ranks."""
    if kind == "trained":
        rises = dataset.trained_rises.sel(norm=norm)
        return rises.mean(("trained_module", "layer", "rank")).values
    rises = factored(dataset).random_rises.mean(("module", "layer", "rank"))
    return rises.sel(norm=norm).values


def factored(dataset):
    """Random stacks whose matrices are truncated one by one, not merged."""
    return dataset.sel(module=list(MATRICES))


def layer_means(values):  # (seed or run, a module, layer, rank) -> [R, L]
    module = next(axis for axis in values.dims if axis.endswith("module"))
    return values.mean((module, "rank")).values


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
            where="Remark 6 and Theorem 2", what="Σ|G_t|², which the bound contains"
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
        "moves": dict(less="less Σ|G_t|² moves", size="the mean |log(after / before)| over draws"),
        "spread": dict(
            less="less the change of Σ|G_t|² varies", size="the deviation of log(after / before)"
        ),
    }
    kinds = {
        "random": dict(of="", over="seeds", redrawn=FRESH),
        "trained": dict(of=" of trained stacks", over="runs", redrawn=FRESH_RUNS),
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
