"""The panels of `lm_heads`, of one task."""

import numpy as np

from experiments.language.lm_heads.answers import (
    changes,
    importances,
    margins_kept,
    pseudo_values,
    scores,
)
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.store import results

BLUE, GREY = style.COLOURS[0], "grey"


def effective_heads(ax, dataset):
    """N_l of every layer by slopes, and of some by closing heads."""
    few, heads = results.config_of(dataset).searched, dataset.sizes["head"]
    depth, layers = np.arange(dataset.sizes["depth"]), dataset.layer.values
    for name, color in (("random_slope", GREY), ("absolute_slope", BLUE)):
        slopes = dataset[name].transpose("run", "depth", "head").values
        style.mean_band(ax, depth, pseudo_values(slopes), marker=None, color=color)
    numbers = importances(dataset, few)
    looks = {"change": {}, "mean": {"mfc": "white"}}
    for i, (reading, look) in enumerate(looks.items()):
        count = pseudo_values(numbers[reading])
        style.mean_points(ax, layers + 0.5 * i, count, fmt="o", color=style.BLACK, ms=4, **look)
    for level in (1, heads):
        ax.axhline(level, color=GREY, lw=0.8, ls=":")
    ax.set(xlabel="layer", ylabel="effective heads", ylim=(0, heads + 1.5))
    ax.set_title("effective heads of a layer")


def layers(ax, dataset):
    """What closing heads changes, layer by layer: single ones, all, and all but the top one."""
    few, places = results.config_of(dataset).searched, np.arange(dataset.sizes["layer"])
    whole = scores(dataset, "whole", few)[:, None]
    single = importances(dataset, few)["change"]
    style.log_axes(ax, y=True)
    means = np.exp(np.log(single).mean(0))  # [layer, H]
    for place, rows in zip(places, means, strict=True):
        ax.plot([place - 0.15] * len(rows), rows, ".", color=GREY, ms=3)
    for name, color, step in (("none", style.BLACK, 0.15), ("top_kept", BLUE, 0.3)):
        runs = changes(whole, scores(dataset, name, few))
        style.ratio_points(ax, places + step, runs, fmt="o", color=color, ms=4)
    ax.set_xticks(places, dataset.layer.values)
    ax.set(xlabel="layer", ylabel="change of answers, KL", xlim=(-0.5, len(places) - 0.3))
    ax.set_title("heads closed in one layer")


def order_kept(ax, dataset):
    """The order of answers under masks of the whole model."""
    kept = margins_kept(dataset)
    values = np.stack(list(kept.values()), axis=1)
    middle, (low, high) = values.mean(0), style.mean_ends(values)
    bars = np.nan_to_num([middle - low, high - middle], posinf=0)
    rows = np.arange(len(kept))
    ax.errorbar(middle, rows, xerr=bars, fmt="o", color=BLUE, ms=4)
    ax.set_yticks(rows, list(kept))
    ax.axvline(0, color=GREY, lw=0.8)
    ax.set(xlim=(-0.5, 1.05), ylim=(len(kept) - 0.5, -0.5))
    ax.set(xlabel="rank correlation of margins", title="a part of all heads")


def common_maps(ax, dataset):
    """What the best common map misses of the move since the first layer, after each."""
    depth = np.arange(dataset.sizes["after"])
    linear = dataset.unexplained
    kinds = {
        "all tokens": (linear.sel(tokens="all tokens"), GREY),
        "but the first": (linear.sel(tokens="without the first"), BLUE),
        "held out": (dataset.held_out, style.COLOURS[1]),
        "any function": (dataset.by_word, style.BLACK),
    }
    ends = {}
    for name, (values, color) in kinds.items():
        runs = values.transpose("run", "after").values[:, 1:]
        style.mean_band(ax, depth[1:], runs, marker=None, color=color)
        ends[name] = runs[:, -1].mean()
    ax.set(xlabel="after layer", ylabel="missed of the move", ylim=(0, 1.0))
    end_labels(ax, ends, [color for _, color in kinds.values()])
    ax.set_title("best common map")
