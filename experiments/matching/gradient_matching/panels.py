"""What stands beside the answer: errors and objectives by size, small pools, and the learners."""

import numpy as np

from experiments.matching.rows import upright
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, off_scale
from lsa_lab.store import results

COMPARED = ("mismatching", "random", "best of 5", "moments", "matching, prefix", "matching")


def look_of(rule: str) -> dict:
    """The method's own; hollow without the swaps."""
    return style.METHOD["matching"] | {"mfc": "white"} if "greedy" in rule else style.METHOD[rule]


def medians(ax, x, runs, rule, label=None):  # runs [R, len(x)]
    """The median of the runs as a line of points, and the middle 80 % of them as bars."""
    upright(ax, x, runs, ls="-", lw=0.8, label=label, **look_of(rule))


def by_size(axes, dataset):
    sizes, config = dataset.n.values, results.config_of(dataset)
    rest = float(dataset.pool_error.median())
    limits = ((rest / 3, 30.0 * config.d), (0.05, 8.0))
    panels = (dataset.error, dataset.gap / dataset.expected)
    for ax, values, ylim in zip(axes, panels, limits, strict=True):
        style.log_axes(ax, x=True, y=True, ticks=sizes)
        ax.set(xlabel=f"n of a pool of {config.m}", ylim=ylim, xlim=(sizes[0] / 2, sizes[-1] * 1.3))
        for i, rule in enumerate(COMPARED):
            runs = values.sel(rule=rule).transpose("run", "n").values
            x = sizes * 1.05 ** (i - 2.5)
            off_scale(ax, x, np.median(runs, 0), look_of(rule)["color"])
            medians(ax, x, runs, rule, rule)
    axes[0].axhline(rest, color=style.BLACK, lw=1.2)
    direct_label(axes[0], sizes[0] / 2, rest, "the whole pool", style.BLACK, (3, -3))
    axes[0].set(ylabel="error on queries", title="error")
    axes[1].set(ylabel="relative to random subsets", title="objective")
    axes[0].legend(loc="upper right")


def small_pools(ax, dataset):
    """What greedy choice and swaps reach of the least objective of all subsets."""
    size, pools = results.config_of(dataset).small_size, dataset.pool.values
    ratio, places = dataset.small / dataset.small.sel(how="exact"), np.arange(len(pools))
    names = {"swaps": "matching", "greedy": "greedy only", "random": "random"}
    for i, (how, rule) in enumerate(names.items()):
        runs = ratio.sel(how=how).transpose("run", "pool").values
        x, look = places + 0.2 * (i - 1), look_of(rule)
        medians(ax, x, runs, rule)
        high = float(np.quantile(runs[:, -1], style.QUANTILES[1]))
        direct_label(ax, x[-1], high, how, look["color"], (-3 if how == "swaps" else 0, 2))
    ax.axhline(1, color=style.BLACK, lw=0.8)
    ax.set_xticks(places, pools)
    ax.set(xlabel="pool", ylabel="objective / least possible")
    ax.set_title(f"all subsets of {size} tried")


def learners(ax, dataset):
    """How much of the proxy's training is matched, and how long the prefix is."""
    names = (
        ("by_used", "used", "checkpoints of the proxy", "matching"),
        ("by_length", "length", "tokens of the prefix", "matching, prefix"),
    )
    for name, axis, label, rule in names:
        runs = (dataset[name] / dataset.pool_error).transpose("run", axis).values
        medians(ax, dataset[axis].values, runs, rule, label)
    ax.axhline(1, color=style.BLACK, lw=0.8)
    ax.set(xlabel="how many", ylabel="error / that of the whole pool", title="what is trained")
    ax.legend()
