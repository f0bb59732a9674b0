"""Heads that answers need, layer by layer, and the order of answers under masks."""

import numpy as np

from experiments.language.data_sets import called
from experiments.language.lm_heads import claims
from experiments.language.lm_heads.answers import pseudo_values
from experiments.language.lm_heads.config import PRUNED
from lsa_lab.harness.draw import style
from lsa_lab.store import results

BLUE, GREY = style.COLOURS[0], "grey"
LINES = ("slopes, random weights", "random_slope", GREY), ("slopes", "absolute_slope", BLUE)
POINTS = ("change", "closed", style.BLACK), ("mean", "mean write", "white")


def plot(dataset):
    heads = claims.numbers(dataset)[results.config_of(dataset).tasks[0][0]]
    return style.panels(heads, 2.5, plot_effective_heads, plot_order_kept)


def plot_effective_heads(ax, heads):
    """N_l of every layer by slopes, and of some by closing heads."""
    depth, number = 1 + np.arange(heads.dataset.sizes["depth"]), heads.number
    for words, name, color in LINES:
        slopes = heads.dataset[name].transpose("run", "depth", "head").values
        style.mean_band(ax, depth, pseudo_values(slopes), words, marker=None, color=color)
    for i, (reading, words, fill) in enumerate(POINTS):
        x, count = heads.dataset.layer.values + 1 + 0.5 * i, heads.count(reading)
        look = {"color": style.BLACK, "mfc": fill, "ms": 4}
        style.mean_points(ax, x, count, words, fmt="o", **look)
    for level in (1, number):
        ax.axhline(level, color=GREY, lw=0.8, ls=":")
    ax.set(xlabel="layer", ylabel="effective heads", ylim=(0, number + 5))
    ax.legend(ncols=2, fontsize=7, loc="upper center")
    fewest = pseudo_values(slopes).mean(0).argmin()  # of the last line, which has every layer
    ax.set_title(f"By slopes layer {1 + fewest} uses the fewest")


def plot_order_kept(ax, heads):
    """The order of answers under masks of the whole model."""
    values = np.stack(list(heads.order_kept.values()), axis=1)
    middle, (low, high) = values.mean(0), style.mean_ends(values)
    bars = np.nan_to_num([middle - low, high - middle], posinf=0)
    ax.errorbar(middle, range(len(middle)), xerr=bars, fmt="o", color=BLUE, ms=4)
    ax.set_yticks(range(len(middle)), list(heads.order_kept))
    ax.axvline(0, color=GREY, lw=0.8)
    ax.set(xlim=(-0.5, 1.05), ylim=(len(middle) - 0.5, -0.5))
    ax.set(xlabel="rank correlation of margins")
    ax.set_title(f"One head a later layer leaves {heads.order_kept[PRUNED].mean():z.2f}")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    (name, task), *_ = config.tasks
    heads = claims.numbers(dataset)[name]
    count, mean = (heads.count(reading).mean(0) for reading in ("change", "mean"))
    return (
        f"In {called(config.model_name)}, on {task.title}, {min(count[0], heads.number):.1f} "
        f"(closed) or {mean[0]:.1f} (mean write) of {heads.number} heads change answers in the "
        f"first layer, and {count[1:].min():.1f} to {count[1:].max():.1f} or {mean[1:].min():.1f} "
        f"to {mean[1:].max():.1f} in {len(count) - 1} later ones. With one head in each later "
        f"layer, answers correlate with the whole model's by "
        f"{heads.order_kept[PRUNED].mean():z.2f}. Lines are by the slope in a head's gate, dotted "
        f"ones all heads and one. Bars are intervals over {config.runs} runs."
    )
