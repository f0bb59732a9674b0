"""The figure of `matching_is_exact`, drawn from its result alone."""

import numpy as np

from experiments.matching.matching_is_exact.config import PATHS, SQUARES
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 6.4, (2, 2))
    counts, knee, lost = dataset.matched.values, settings.d + 1, 0
    floor = np.finfo(float).eps / 10
    for ax, path in zip(axes[:2], PATHS, strict=True):
        for i, depth in enumerate(settings.depths):
            there = dataset.linear.sel(model=f"descent, {depth}", path=path, square="free")
            runs = np.maximum(there.transpose("run", "matched"), floor)
            label = f"{depth} layer{'s' * (depth > 1)}"
            x = counts + 0.08 * (i - 1.5)
            lost += style.band(ax, x, runs, label, style.COLOURS[i], style.MARKERS[i])
    axes[0].set_title("checkpoints of a proxy trained on batches")
    axes[1].set_title("checkpoints of the stack's own descent")
    deepest = dataset.linear.sel(model=f"random, {max(settings.random_depths)}", path="proxy")
    shown = [(f"random linear, y² {square}", deepest.sel(square=square)) for square in SQUARES]
    shown += [(f"softmax {kind}", dataset.softmax.sel(weights=kind))
              for kind in dataset.weights.values]  # fmt: skip
    for i, (name, there) in enumerate(shown):
        runs = np.maximum(there.transpose("run", "matched"), floor)
        x = counts + 0.06 * (i - 2)
        lost += style.band(axes[2], x, runs, name, style.COLOURS[i], style.MARKERS[i])
    axes[2].set_title("other weights, other attention")
    for ax in axes[:3]:
        ax.axvline(knee, color="grey", lw=0.8, ls="--")
        ax.axhspan(floor, settings.exact, color="grey", alpha=0.12, lw=0)
        ax.set(xlabel="matched checkpoints", ylabel="gap / size of predictions", xticks=counts)
        ax.set_ylim(floor / 2, 30)
        style.log_axes(ax, y=True)
        ax.legend(loc="center left", bbox_to_anchor=(0, 0.42))
    lost += chosen_panel(axes[3], dataset)
    soft = dataset.softmax.isel(matched=-1).median("run")
    style.caption(
        drawn,
        f"Sets with the pool's mean gradients at some checkpoints, otherwise drawn anew (d = "
        f"{settings.d}, dashed: d + 1). Descent of L layers cannot tell them from the pool from "
        f"d + 1 checkpoints on (a), or from L of its own path (b); any linear stack if y² agrees "
        f"too; softmax still moves by {float(soft.min()):.2g} to {float(soft.max()):.2g} (c). d: "
        f"{settings.n} chosen from {settings.m} match only nearly. Median of {settings.runs} runs "
        f"and the middle 80 %; {lost} numbers left out as not finite. Shaded: rounding.",
    )
    return drawn


def chosen_panel(ax, dataset):
    """Subsets of the pool, matched as well as they can be."""
    settings, lost = results.config_of(dataset), 0
    most, depth = settings.most, max(settings.depths)
    rows = (
        (dataset.subset, f"{depth} layers"),
        (dataset.one_layer, "one layer"),
        (dataset.bound, "bound for one layer"),
    )
    for i, (values, name) in enumerate(rows):
        random = values[:, most:].median("pick")
        runs = np.concatenate([random.values[:, None], values[:, :most].values], axis=1)
        x = np.arange(most + 1) + 0.08 * (i - 1)
        lost += style.band(ax, x, runs, name, style.COLOURS[i], style.MARKERS[i])
    ax.axvline(settings.d + 1, color="grey", lw=0.8, ls="--")
    ax.set_xticks(np.arange(most + 1), ["random", *map(str, range(1, most + 1))])
    ax.set(xlabel="checkpoints used", ylabel="gap / size of predictions")
    ax.set_title("subsets chosen from the pool")
    style.log_axes(ax, y=True)
    ax.legend()
    return lost
