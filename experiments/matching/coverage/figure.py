"""The clusters' shares by size, and the errors of either group at the middle size."""

import numpy as np

from experiments.matching.coverage.claims import over_strata, relative, relative_divergence
from experiments.matching.coverage.config import GROUPS, KINDS, RULES
from lsa_lab import results
from lsa_lab.harness import style

LEAST = 1e-5  # values below it are drawn at it: a zero has no logarithm


def plot(dataset):
    figure, axes = style.figure(9.6, 6.0, (2, 3))
    for ax, kind in zip(axes[:3], KINDS, strict=True):
        divergences(ax, dataset.sel(kind=kind))
        ax.set_title(kind)
    for ax, kind in zip(axes[3:], KINDS, strict=True):
        errors(ax, relative(dataset).sel(kind=kind, n=middle_size(dataset)))
        ax.set_title(kind)
    axes[1].legend(ncols=2, loc="upper right", columnspacing=0.8, handlelength=1.2)
    axes[4].legend(loc="upper left")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    minority = relative(dataset).sel(rule="matching", group="minority")
    missing = style.missing(dataset.divergence) + style.missing(relative(dataset))
    return (
        "Matching's KL of the clusters' shares is "
        f"{_span(relative_divergence(dataset))} times that of random subsets; strata keep the "
        f"shares and err {_span(over_strata(dataset))} times as much. "
        f"Pools of {config.m} with clusters {1 - config.minority:g} to {config.minority:g}; "
        "one task, a task each, or the cluster as label. Matching leaves the minority "
        f"{_span(minority)} of the error of random subsets. Expected KL at random: (1 - n/m) / 2n. "
        f"Values below {LEAST:g}, zero mostly, are drawn there. Random and stratified are means of "
        f"{config.random_draws} draws. Median of {config.runs} runs and the middle 80 % of "
        f"them; {missing} numbers left out as not finite."
    )


def _span(values):  # [kind, run, n]
    medians = values.median("run")
    return f"{float(medians.min()):.2g} to {float(medians.max()):.2g}"


def middle_size(dataset) -> int:
    return int(dataset.n.values[dataset.sizes["n"] // 2])


def divergences(ax, dataset):
    sizes, config = dataset.n.values, results.config_of(dataset)
    for i, rule in enumerate(RULES):
        runs = np.maximum(dataset.divergence.sel(rule=rule).transpose("run", "n"), LEAST)
        x = sizes * 1.04 ** (i - 2.5)
        style.band(ax, x, runs, rule, style.COLOURS[i], style.MARKERS[i])
    style.line(ax, sizes, (1 - sizes / config.m) / (2 * sizes), "random, expected")
    style.log_axes(ax, x=True, y=True, ticks=sizes)
    ax.set(xlabel="n", ylabel="KL of the clusters' shares", ylim=(LEAST / 2, 60))


def errors(ax, ratio):  # [run, rule, group]
    places = np.arange(len(RULES))[::-1]
    for i, group in enumerate(GROUPS):
        runs = ratio.sel(group=group).transpose("run", "rule").values
        low, middle, high = np.quantile(runs, [0.1, 0.5, 0.9], axis=0)
        look = {"fmt": style.MARKERS[i], "color": style.COLOURS[i], "elinewidth": 0.8}
        y, bars = places + 0.15 - 0.3 * i, [middle - low, high - middle]
        ax.errorbar(middle, y, xerr=bars, label=group, **look)
    ax.axvline(1, color="grey", lw=0.8, ls="--")
    ax.set_yticks(places, RULES)
    ax.set(xlabel=f"error / that of random subsets, n = {int(ratio.n)}")
    style.log_axes(ax, x=True, ticks=(0.05, 0.1, 0.2, 0.5, 1, 2))
    ax.set(xlim=(0.025, 2.6))
