"""Errors and objectives of every rule by size, small pools, the learners, and what is judged."""

import numpy as np

from experiments.matching.gradient_matching.claims import over_rival, relative, samples
from experiments.matching.gradient_matching.config import RIVALS, statements, tag
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

COMPARED = ("mismatching", "random", "best of 5", "matching", "matching, prefix", "moments")


def plot(dataset):
    figure, axes = style.figure(6.75, 8.8, (3, 2))
    by_size(axes[:2], dataset)
    all_rules(axes[2], dataset)
    small_pools(axes[3], dataset)
    learners(axes[4], dataset)
    judged_rows(axes[5], dataset)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    matched = relative(dataset).sel(rule="matching").median("run")
    diverse = over_rival(dataset, "determinantal").median("run")
    names = ("error", "gap", "small", "by_used", "by_length", "gap_by_swaps")
    return (
        f"Matched demonstrations leave {_span(matched)} of the error of random subsets, and "
        f"{_span(diverse)} of that of determinantal ones. "
        "These are chosen without gradients. "
        f"A stack of {config.depth} steps of descent learns from n of {config.m} noisy "
        f"demonstrations (d = {config.d}, noise {config.noise_std:g}). "
        f"a to e: median of {config.runs} runs and the middle 80 % of them; random is the median "
        f"of {config.random_draws} draws; {sum(style.missing(dataset[name]) for name in names)} "
        f"numbers left out as not finite. e: n = {config.ablation_size}. f: {judged_panel.KEY}."
    )


def _span(medians):  # [n]
    return f"{float(medians.min()):.2g} to {float(medians.max()):.2g}"


def by_size(axes, dataset):
    sizes, config = dataset.n.values, results.config_of(dataset)
    panels = (dataset.error, dataset.gap / dataset.expected)
    for i, (rule, color) in enumerate(zip(COMPARED, style.COLOURS[::-1], strict=True)):
        for ax, values in zip(axes, panels, strict=True):
            runs = values.sel(rule=rule).transpose("run", "n")
            style.band(ax, sizes * 1.05 ** (i - 2.5), runs, rule, color, style.MARKERS[i])
    rest = float(dataset.pool_error.median())
    axes[0].axhline(rest, color=style.BLACK, lw=1.2, label="the whole pool")
    axes[1].axhline(1, color=style.BLACK, lw=1.2)
    axes[0].set(ylabel="error on queries", ylim=(rest / 2, 30 * config.d))
    axes[1].set(ylabel="objective / expected of a random subset")
    axes[0].set_title("error against n")
    axes[1].set_title("objective against n")
    for ax in axes:
        style.log_axes(ax, x=True, y=True, ticks=sizes)
        ax.set(xlabel=f"n of a pool of {config.m}")
    axes[0].legend(loc="upper right")


def all_rules(ax, dataset):
    """All rules at three sizes, the best on average at the top."""
    ratio, sizes = relative(dataset), dataset.n.values
    average = np.log(ratio.median("run")).mean("n")
    order = average.sortby(average).rule.values[::-1]
    for i, n in enumerate(sizes[len(sizes) > 1 :: max(1, len(sizes) // 3)][:3]):
        runs = ratio.sel(n=n, rule=order).values
        low, middle, high = np.quantile(runs, [0.1, 0.5, 0.9], axis=0)
        look = {"fmt": style.MARKERS[i], "color": style.COLOURS[i], "elinewidth": 0.8}
        y, bars = np.arange(len(order)) + 0.22 * (1 - i), [middle - low, high - middle]
        ax.errorbar(middle, y, xerr=bars, label=f"n = {n}", **look)
    ax.axvline(1, color="grey", lw=0.8, ls="--")
    ax.set_yticks(np.arange(len(order)), order)
    style.log_axes(ax, x=True, ticks=(0.03, 0.1, 0.3, 1, 3, 10))
    ax.set(xlabel="error / that of a random subset", xlim=(0.03, 30))
    ax.set_title("all rules")
    ax.legend(loc="upper right")


def small_pools(ax, dataset):
    size, x = results.config_of(dataset).small_size, dataset.pool.values
    ratio = dataset.small / dataset.small.sel(how="exact")
    for how, color, marker in zip(
        ("swaps", "greedy", "random"), style.COLOURS, style.MARKERS, strict=False
    ):
        runs = ratio.sel(how=how).transpose("run", "pool")
        style.band(ax, x, runs, how, color, marker)
    ax.axhline(1, color=style.BLACK, lw=1.2, label="the best subset")
    ax.set(xlabel="pool", ylabel="objective / least possible", xticks=x)
    ax.set_title(f"all subsets of {size} tried")
    ax.legend(loc="upper left")


def learners(ax, dataset):
    for i, (name, axis, label) in enumerate(
        (("by_used", "used", "checkpoints used"), ("by_length", "length", "prefix tokens"))
    ):
        runs = (dataset[name] / dataset.pool_error).transpose("run", axis)
        style.band(ax, dataset[axis].values, runs, label, style.COLOURS[i], style.MARKERS[i])
    ax.axhline(1, color=style.BLACK, lw=1.2, label="the whole pool")
    ax.set(xlabel="how many", ylabel="error / that of the whole pool")
    ax.set_title("what is trained")
    ax.legend()


def judged_rows(ax, dataset):
    config = results.config_of(dataset)
    most, size = max(config.sizes), config.ablation_size
    names = {
        "random": "matching / random, worst n",
        "mismatched_at_most": f"mismatched / random, n = {most}",
        "mismatched": "the same, least n",
        **{f"over_{tag(rival)}": f"/ {rival}, worst n" for rival in RIVALS},
        "rivals_on_average": "/ worst rival, all n",
        "pool": f"/ the pool, n = {size}",
        "prefix": "prefix / proxy, worst",
        "exact": "swaps / best subset",
        "swaps": "swaps / greedy",
        "checkpoints": "one / all checkpoints",
    }
    style.log_axes(ax, x=True, ticks=(0.5, 1, 2, 5))
    judged_panel.rows(ax, statements(config), samples(dataset), names, (0.25, 8.0))
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="judged ratio")
    ax.set_title("what is judged")
