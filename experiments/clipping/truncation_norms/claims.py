"""What `truncation_norms` judges."""

from functools import partial

import numpy as np

from experiments.clipping.truncation_norms.config import MATRICES, MODULES, READINGS
from lsa_lab.judging.statements import Statement, grid

RARELY = 0.05  # share of draws up to which "truncation lowers it" may still be said
A2 = "A2 (2406.03768)"
FRESH = {"random": "32 fresh seeds, 16 before", "trained": "16 fresh runs, 10 before"}
CONTROLS = 'A2 says "controls" of |G_t|, and "decreases" of its upper bound alone, a theorem here'


def rises_at(dataset, norm, module, layers=slice(None)):  # -> [S], and [R] or None
    """The share of draws in which a norm rises, of random and of trained stacks, averaged over the
    ranks and some layers."""

    def average(rises):
        return rises.sel(norm=norm).isel(layer=layers).mean(("layer", "rank")).values

    random = average(dataset.random_rises.sel(module=module))
    if module not in dataset.trained_module:
        return random, None
    return random, average(dataset.trained_rises.sel(trained_module=module))


def tables_of_rises(dataset):  # -> two of {norm: ([S], [R] or None)}
    """The table in docs/theory, "Norms under truncation": what provably never rises, and others."""
    first, later, before_last = slice(0, 1), slice(1, None), slice(0, -1)
    bounds = [rises_at(dataset, "bound", name) for name in MODULES]
    proved = {
        "UB_t, any matrix": tuple(
            np.max([share for share in shares if share is not None], axis=0)
            for shares in zip(*bounds, strict=True)
        ),
        "|G_t|, W_V, any t": rises_at(dataset, "own", "W_V"),
        "|G_1|, W_Q": rises_at(dataset, "own", "W_Q", first),
        "|G_1|, merged": rises_at(dataset, "own", "merged", first),
        f"|{READINGS[0]}|": (mlp_rises(dataset, READINGS[0]), None),
    }
    others = {
        f"|{READINGS[1]}|": (mlp_rises(dataset, READINGS[1]), None),
        "|G_1|, W_K": rises_at(dataset, "own", "W_K", first),
    }
    for name in ("W_K", "W_Q", "merged"):
        others[f"|G_t|, {name}, t > 1"] = rises_at(dataset, "own", name, later)
    for words, norm in {"a later |G|": "later", "Σ|G|²": "sum"}.items():
        for name in MODULES:
            others[f"{words}, {name}"] = rises_at(dataset, norm, name, before_last)
    return proved, others


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
    norms = {
        "own": ("|G_t| of its layer", "Remarks 4 and 6"),
        "sum": ("Σ|G_t|²", "Remark 6 and Theorem 2"),
    }
    movements = {"moves": "less Σ|G_t|² moves", "spread": "less the change of Σ|G_t|² varies"}
    sizes = {"moves": "mean size", "spread": "deviation"}
    over = {"random": "seeds", "trained": "runs"}
    draws = {"random": "draws", "trained": "prompts"}
    scale = f"; random entries of variance {config.scale:g}²/e; the share depends on it"
    notes = {"random": CONTROLS + scale, "trained": CONTROLS}

    def words(kind, norm="own", movement="moves"):
        first = (movement, kind) == ("moves", "random")
        return dict(
            over=over[kind],
            draws=draws[kind],
            note=notes[kind],
            redrawn=FRESH[kind],
            norm=norms[norm][0],
            where=norms[norm][1],
            less=movements[movement],
            size=sizes[movement],
            revision="it was |median log ratio|, which cancels" if first else "added",
        )

    of_kinds = partial(Statement, over="{over}", redrawn="{redrawn}", words=words)
    return (
        of_kinds(
            "norm_falls",
            f"{A2}, {{where}}, our reading, in our setting",
            "Truncating a matrix of a {kind} stack lowers {norm}",
            "the share of {draws}, matrices, layers and ranks in which it rises",
            at_most=RARELY,
            note="{note}",
            sample=norm_rises,
            cells=grid("own - sum sum_when_trained", norm=norms, kind=over),
            message="Truncating a matrix of a random or a trained stack lowers |G_t| of its layer "
            "and Σ|G_t|²",
        ),
        Statement(
            "mlp_with_residuals",
            f"modelled on {A2}, Example 4",
            "|ΔW + W_MLP + W_MLP ΔW|, the update of a block with residuals, falls as W_MLP is cut",
            "the share of draws in which it rises",
            at_most=RARELY,
            over="seeds",
            note="A2 has |W_MLP ΔW|, which never rises: a theorem here",
            redrawn=FRESH["random"],
            sample=lambda dataset: mlp_rises(dataset, READINGS[1]),
        ),
        Statement(
            "touched_explains",
            f"{A2}, Remark 5, our reading, in our setting",
            "A deep layer of trained stacks moves Σ|G_t|² less mostly because it touches fewer of "
            "its terms",
            "log(share of the sum that the last layer touches) over log(how far the sum moves with "
            "the last layer / with the first)",
            at_least=0.5,
            note="the null of deep_is_steady: a layer leaves the terms before it as they are",
            revision="added",
            sample=explained,
        ),
        of_kinds(
            "deep_changes_less",
            f"{A2}, Remark 5, our reading, in our setting",
            "The deeper the truncated layer of a {kind} stack, the {less}",
            "the {size} of log(after / before), last layer less first layer,",
            at_most=0.0,
            revision="{revision}",
            sample=last_less_first,
            cells=grid(
                "deep_is_steady deep_is_steady_when_trained "
                "deep_varies_less deep_varies_less_when_trained",
                movement=movements,
                kind=over,
            ),
            message="The deeper the layer that is truncated, the less Σ|G_t|² moves, and the less "
            "its change varies, in random and in trained stacks",
        ),
    )
