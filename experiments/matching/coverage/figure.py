"""The figure of `coverage`, drawn from its result alone."""

import numpy as np

from experiments.matching.coverage.claims import relative
from experiments.matching.coverage.config import GROUPS, KINDS, METHODS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.6, 6.0, (2, 3))
    sizes, lost, least = dataset.n.values, 0, 1e-5
    middle = sizes[len(sizes) // 2]
    expected = (1 - sizes / settings.m) / (2 * sizes)
    for ax, kind in zip(axes[:3], KINDS, strict=True):
        for i, rule in enumerate(METHODS):
            runs = dataset.divergence.sel(kind=kind, rule=rule).transpose("run", "n")
            x = sizes * 1.04 ** (i - 2.5)
            lost += style.band(
                ax, x, np.maximum(runs, least), rule, style.COLOURS[i], style.MARKERS[i]
            )
        style.line(ax, sizes, expected, "random, expected")
        style.log_axes(ax, x=True, y=True, ticks=sizes)
        ax.set(xlabel="n", ylabel="KL of the clusters' shares", ylim=(least / 2, 60))
        ax.set_title(kind)
    axes[1].legend(ncols=2, loc="upper right", columnspacing=0.8, handlelength=1.2)
    for ax, kind in zip(axes[3:], KINDS, strict=True):
        there = relative(dataset).sel(kind=kind, n=middle)
        for i, group in enumerate(GROUPS):
            runs = there.sel(group=group).transpose("run", "rule").values
            low, mid, high = np.quantile(runs, [0.1, 0.5, 0.9], axis=0)
            ax.errorbar(
                mid,
                np.arange(len(METHODS))[::-1] + 0.15 - 0.3 * i,
                xerr=[mid - low, high - mid],
                fmt=style.MARKERS[i],
                color=style.COLOURS[i],
                label=group,
                elinewidth=0.8,
            )
        ax.axvline(1, color="grey", lw=0.8, ls="--")
        ax.set_yticks(np.arange(len(METHODS))[::-1], METHODS)
        ax.set(xlabel=f"error / that of random subsets, n = {middle}")
        style.log_axes(ax, x=True, ticks=(0.05, 0.1, 0.2, 0.5, 1, 2))
        ax.set(xlim=(0.025, 2.6))
        ax.set_title(kind)
    axes[4].legend(loc="upper left")
    kl = dataset.divergence.sel(n=middle)
    shown = (kl.sel(rule="matching").median("run") / kl.sel(rule="random").mean("run")).values
    style.caption(
        drawn,
        f"Pools of {settings.m} with clusters {1 - settings.minority:g} to {settings.minority:g}: "
        f"with {middle} demonstrations the KL of matching is "
        + ", ".join(f"{value:.2g}" for value in shown)
        + " of the mean of random subsets (one task, a task each, label). Expected "
        "at random: (1 - n/m) / 2n. Values below "
        f"{least:g}, zero mostly, are drawn there. Random and stratified are means of "
        f"{settings.random_draws} draws. Median of {settings.runs} runs and the middle 80 % of "
        f"them; {lost} numbers left out as not finite.",
    )
    return drawn
