"""The figure of `one_layer_optimum`, drawn from its result alone."""

import numpy as np

from experiments.one_layer.one_layer_optimum.claims import worst
from experiments.one_layer.one_layer_optimum.config import TASKS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 3.4, (1, 3))
    length, lost, places = dataset.length.values, 0, len(TASKS) * len(dataset.heads)
    for i, (task, color) in enumerate(zip(TASKS, style.COLOURS, strict=False)):
        style.line(axes[0], dataset.n, dataset.theory.sel(task=task), task, color)
        for j, (heads, marker) in enumerate(zip(settings.heads, style.MARKERS, strict=False)):
            there = dataset.sel(task=task, heads=heads).transpose("run", "length", "n")
            # Beside each other, not on top of each other.
            x = length * 1.1 ** (len(settings.heads) * i + j - (places - 1) / 2)
            label = (f"{heads} head" + "s" * (heads > 1)) if i == 0 else None
            shown = (there.risk, 100 * there.excess, 1 - there.cosine)
            for ax, values, at in zip(axes, shown, (length, x, x), strict=True):
                lost += style.band(ax, at, values, label if ax is axes[2] else None, color, marker)
    axes[1].axhline(100 * settings.excess, color="grey", lw=0.8, ls="--", label="criterion")
    axes[2].axhline(1 - settings.cosine, color="grey", lw=0.8, ls="--", label="criterion")
    axes[1].set_ylim(bottom=min(0, *axes[1].get_ylim()))
    names = ("risk", "excess over the optimum, %", "1 - cosine with A*")
    titles = ("theory and trained layers", "trained layers, paired", "the learned matrix")
    for ax, name, title in zip(axes, names, titles, strict=True):
        style.log_axes(ax, x=True, y=ax is not axes[1], ticks=length)
        ax.set(xlabel="demonstrations n", ylabel=name)
        ax.set_title(title)
        ax.legend()
    excess, distance = (worst(one, np.mean).mean() for one in (dataset.excess, 1 - dataset.cosine))
    style.caption(
        drawn,
        f"Lines: the optimum in closed form; colours are tasks. Points: median of {settings.runs} "
        f"trained layers and the middle 80 % of them; {lost} left out as not finite. "
        f"d = {settings.d}. At its worst task and length the mean risk is "
        f"{100 * excess:.2g} % above the optimum and the mean cosine {1 - distance:.4f}.",
    )
    return drawn
