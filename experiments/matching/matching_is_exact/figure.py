"""Gaps against the number of matched checkpoints: three kinds of models, and chosen subsets."""

import numpy as np

from experiments.matching.matching_is_exact import claims
from experiments.matching.matching_is_exact.claims import random_subsets
from experiments.matching.matching_is_exact.config import PATHS
from experiments.matching.rows import upright
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

ROUNDING, LEAST = 1e-10, 1e-17
GAP = "gap / size of predictions"


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.7, 2.7), ((1, 1, 1), (4, 4, 5)))
    proxy, own = (dataset.linear.sel(path=path) for path in PATHS)
    descents(axes[0], proxy.sel(square="free"), config)
    axes[0].legend(loc="center left", bbox_to_anchor=(0, 0.55), handlelength=1)
    axes[0].set_title("descent")
    linear_attention(axes[1], proxy, config)
    softmax(axes[2], dataset)
    descents(axes[3], own.sel(square="free"), config)
    axes[3].set_title("its own path")
    for ax in axes[:4]:
        twins(ax, dataset, config)
        axis_to_rounding(ax, config)
    for ax in axes[1:3]:
        ax.set_ylabel("")
    chosen_subsets(axes[4], dataset)
    plot_judged(axes[5], dataset)
    return figure


def twins(ax, dataset, config):
    """Axes for sets that match some checkpoints, and where these are d + 1."""
    style.log_axes(ax, y=True)
    ax.axvline(config.d + 1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="matched checkpoints", ylabel=GAP)
    ax.set_xticks(dataset.matched.values)


def axis_to_rounding(ax, config):
    """One scale for all models: from beyond the size of the predictions to rounding."""
    ax.axhspan(LEAST, ROUNDING, color="grey", alpha=0.15, lw=0)
    direct_label(ax, 0, ROUNDING, "rounding", "dimgrey", (0.1, -2))
    direct_label(ax, config.d + 1, 3e-6, "d + 1", "dimgrey")
    ax.set(ylim=(LEAST, 100), yticks=[1e-15, 1e-10, 1e-5, 1])


def look_of(config, depth: int) -> dict:
    """A colour and a marker for each depth, the deepest one the darkest."""
    import matplotlib

    i = config.depths.index(depth)
    share = 0.7 * (1 - i / max(1, len(config.depths) - 1))
    return {"color": matplotlib.colormaps["viridis"](share), "marker": style.MARKERS[i]}


def descents(ax, gaps, config):
    for i, depth in enumerate(config.depths):
        runs = gaps.sel(model=f"descent, {depth}").transpose("run", "matched").values
        x, label = gaps.matched.values + 0.1 * (i - 1.5), f"{depth} layer{'s' * (depth > 1)}"
        upright(ax, x, runs, LEAST, label=label, **look_of(config, depth))


def linear_attention(ax, gaps, config):
    """Random weights: hollow without the mean of y²."""
    random, look = gaps.sel(model=f"random, {max(config.random_depths)}"), style.METHOD["linear"]
    for shift, square, face, offset in (
        (-0.08, "free", "white", (0, -2)),
        (0.08, "matched", look["color"], (0, 2)),
    ):
        runs = random.sel(square=square).transpose("run", "matched").values
        upright(ax, random.matched.values + shift, runs, LEAST, mfc=face, **look)
        edge = np.quantile(runs[:, -1], style.QUANTILES[offset[1] > 0])
        at = float(random.matched.values[-1]) + 0.3
        direct_label(ax, at, max(edge, LEAST), f"y² {square}", look["color"], (-0.1, offset[1]))
    ax.set_title("linear, random weights")


def softmax(ax, dataset):
    """Hollow with random weights."""
    look, matched = style.METHOD["softmax"], dataset.matched.values
    for shift, weights, face, edge in (
        (-0.08, "random", "white", 1),
        (0.08, "trained", look["color"], 0),
    ):
        runs = dataset.softmax.sel(weights=weights).transpose("pair", "matched").values
        upright(ax, matched + shift, runs, LEAST, mfc=face, **look)
        y = np.quantile(runs[:, -1], style.QUANTILES[edge])
        direct_label(ax, matched[-1] + 0.3, y, weights, look["color"], (-0.1, 2 if edge else -2))
    ax.set_title("softmax, y² matched")


def chosen_subsets(ax, dataset):
    """Subsets of the pool, matched as well as they can be."""
    config = results.config_of(dataset)
    most, counts = config.most, np.arange(config.most + 1)
    deep, shallow = (look_of(config, depth) for depth in (max(config.depths), config.depths[0]))
    bound = {"color": "dimgrey", "marker": "^"}
    gaps = (
        (f"{max(config.depths)} layers", dataset.subset, deep, 1, 0.9, (3, 2)),
        ("1 layer", dataset.one_layer, shallow, 1, 0.1, (4, -1)),
        ("bound, 1 layer", dataset.bound, bound, 0, 0.5, (3, 3)),
    )
    for i, (label, values, look, at, share, offset) in enumerate(gaps):
        values = values.transpose("run", "pick")
        random = random_subsets(config, values).values[:, None]
        runs = np.concatenate([random, values.values[:, :most]], axis=1)
        x, y = counts + 0.1 * (i - 1), float(np.quantile(runs[:, at], share))
        upright(ax, x, runs, LEAST, **look)
        direct_label(ax, x[at], y, label, look["color"], offset)
    style.log_axes(ax, y=True)
    ax.axvline(config.d + 1, color="grey", lw=0.8, ls="--")
    ax.set_xticks(counts)
    ax.set(xlabel="checkpoints used", ylabel=GAP, title="chosen subsets", ylim=(4e-3, 3))


def plot_judged(ax, dataset):
    style.log_axes(ax, x=True, ticks=(0.02, 0.1, 0.5, 2))
    judged_panel.rows(ax, *evidence(claims, dataset), (0.01, 2.0))
    ax.set(xlabel="gap, or ratio of gaps", title="what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    softmax = dataset.softmax.sel(matched=config.d + 1).median("pair")
    far = (dataset.error / dataset.bayes).median("pair").sel(weights="trained")
    names = ("linear", "softmax", "subset", "whitened", "scaled", "one_layer", "bound")
    missing = sum(style.missing(dataset[name]) for name in names)
    return (
        "d + 1 checkpoints equal the pool for descent of any depth, and for all linear attention "
        "if the mean of y² agrees. Softmax still differs by "
        f"{float(softmax.min()):.2g} to {float(softmax.max()):.2g}; its trained weights have "
        f"{float(far):.2g} times the Bayes rule's error here. In a to d sets have the pool's mean "
        f"gradients at some checkpoints and are otherwise drawn anew; in d these lie on the "
        f"descent's own path. In e, {config.n} of {config.m} are chosen to match (0: at random). "
        f"Points are medians of {config.runs} runs with their middle 80 %. "
        f"{missing} numbers were not finite."
    )
