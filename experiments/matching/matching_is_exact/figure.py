"""Gaps against the number of matched checkpoints: descent, other models, and chosen subsets."""

import numpy as np

from experiments.matching.matching_is_exact.claims import random_subsets
from experiments.matching.matching_is_exact.config import PATHS, SQUARES
from lsa_lab import results
from lsa_lab.harness import style

FLOOR = np.finfo(float).eps / 10  # an exact zero has no logarithm


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(9.0, 6.4, (2, 2))
    for ax, path in zip(axes[:2], PATHS, strict=True):
        descents(ax, dataset.linear.sel(path=path, square="free"), config)
    axes[0].set_title("checkpoints of a proxy trained on batches")
    axes[1].set_title("checkpoints of the stack's own descent")
    other_models(axes[2], dataset)
    for ax in axes[:3]:
        ax.axvline(config.d + 1, color="grey", lw=0.8, ls="--")
        ax.axhspan(FLOOR, config.exact, color="grey", alpha=0.12, lw=0)
        ax.set(xlabel="matched checkpoints", ylabel="gap / size of predictions")
        ax.set(xticks=dataset.matched.values, ylim=(FLOOR / 2, 30))
        style.log_axes(ax, y=True)
        ax.legend(loc="center left", bbox_to_anchor=(0, 0.42))
    chosen_subsets(axes[3], dataset)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    softmax = dataset.softmax.isel(matched=-1).median("run")
    names = ("linear", "softmax", "subset", "one_layer", "bound")
    missing = sum(style.missing(dataset[name]) for name in names)
    return (
        "d + 1 checkpoints equal the pool for descent of any depth, and for all linear attention "
        "if the mean of y² agrees; softmax still differs by "
        f"{float(softmax.min()):.2g} to {float(softmax.max()):.2g}. "
        "Sets with the pool's mean gradients at some checkpoints, otherwise drawn anew "
        f"(d = {config.d}, dashed: d + 1). Descent of L layers cannot tell them from the pool from "
        "d + 1 checkpoints on (a), or from L of its own path (b); other models (c). d: "
        f"{config.n} chosen from {config.m} match only nearly. Median of {config.runs} runs "
        f"and the middle 80 %; {missing} numbers left out as not finite. Shaded: rounding."
    )


def descents(ax, gaps, config):
    for i, depth in enumerate(config.depths):
        runs = gaps.sel(model=f"descent, {depth}").transpose("run", "matched")
        label, x = f"{depth} layer{'s' * (depth > 1)}", gaps.matched.values + 0.08 * (i - 1.5)
        style.band(ax, x, np.maximum(runs, FLOOR), label, style.COLOURS[i], style.MARKERS[i])


def other_models(ax, dataset):
    depth = max(results.config_of(dataset).random_depths)
    random = dataset.linear.sel(model=f"random, {depth}", path="proxy")
    gaps = {f"random linear, y² {square}": random.sel(square=square) for square in SQUARES}
    for kind in dataset.weights.values:
        gaps[f"softmax {kind}"] = dataset.softmax.sel(weights=kind)
    for i, (label, values) in enumerate(gaps.items()):
        runs = np.maximum(values.transpose("run", "matched"), FLOOR)
        x = dataset.matched.values + 0.06 * (i - 2)
        style.band(ax, x, runs, label, style.COLOURS[i], style.MARKERS[i])
    ax.set_title("other weights, other attention")


def chosen_subsets(ax, dataset):
    """Subsets of the pool, matched as well as they can be."""
    config = results.config_of(dataset)
    most, counts = config.most, np.arange(config.most + 1)
    gaps = {
        f"{max(config.depths)} layers": dataset.subset,
        "one layer": dataset.one_layer,
        "bound for one layer": dataset.bound,
    }
    for i, (label, values) in enumerate(gaps.items()):
        values = values.transpose("run", "pick")
        random = random_subsets(config, values).values[:, None]
        runs = np.concatenate([random, values.values[:, :most]], axis=1)
        style.band(ax, counts + 0.08 * (i - 1), runs, label, style.COLOURS[i], style.MARKERS[i])
    ax.axvline(config.d + 1, color="grey", lw=0.8, ls="--")
    ax.set_xticks(counts, ["random", *map(str, counts[1:])])
    ax.set(xlabel="checkpoints used", ylabel="gap / size of predictions")
    ax.set_title("subsets chosen from the pool")
    style.log_axes(ax, y=True)
    ax.legend()
