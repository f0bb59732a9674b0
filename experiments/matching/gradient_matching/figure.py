"""Errors of every rule relative to random subsets, and the headline's rules by size."""

import numpy as np

from experiments.matching import rows
from experiments.matching.gradient_matching import claims
from experiments.matching.gradient_matching.config import WHITE
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.store import results

COMPARED = ("best of 5", "determinantal", "matching", WHITE)
SPAN = (0.03, 10.0)  # of errors relative to random subsets


def plot(dataset):
    return style.panels(dataset, 3.5, relative_by_size, all_rules)


def relative_by_size(ax, dataset):
    """The headline's two rules and a cheap search, against n."""
    ratio, sizes = claims.numbers(dataset).relative, dataset.n.values
    style.log_axes(ax, x=True, y=True, ticks=sizes)
    ax.set(ylim=(0.03, 3), xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
    ends = {"random": 1.0}
    for i, rule in enumerate(COMPARED):
        runs = ratio.sel(rule=rule).values
        x = sizes * 1.06 ** (1 - i)
        rows.upright(ax, x, runs, ls="-", lw=0.8, **look_of(rule))
        for edge in x[np.quantile(runs, style.QUANTILES[1], axis=0) > 3]:  # a bar that leaves
            ax.plot(edge, 3, "^", color=style.METHOD[rule]["color"], ms=3, clip_on=False)
        ends[rule] = float(np.median(runs[:, -1]))
    ax.axhline(1, color=style.METHOD["random"]["color"], lw=1.2)
    heights = {rule.removeprefix("matching, "): height for rule, height in ends.items()}
    end_labels(ax, heights, [style.METHOD[rule]["color"] for rule in ends])
    ax.set(xlabel="n", ylabel="error relative to random subsets", title="Designs win at many shots")


def all_rules(ax, dataset):
    """All rules at three sizes, the best on average at the top."""
    ratio, sizes = claims.numbers(dataset).relative, dataset.n.values
    average = np.log(ratio.median("run")).mean("n")
    order = list(average.sortby(average).rule.values)
    kept = sizes[len(sizes) > 1 :: max(1, len(sizes) // 3)][:3]
    steps = 0.27 * (np.arange(len(kept)) - (len(kept) - 1) / 2)
    for i, rule in enumerate(order):
        runs = ratio.sel(n=kept, rule=rule).transpose("run", "n").values
        rows.medians(ax, i + steps, runs, SPAN, **look_of(rule))
    ax.axvline(1, color="grey", lw=0.8)
    style.log_axes(ax, x=True, ticks=(0.1, 1, 10))
    ax.set_yticks(range(len(order)), order)
    ax.set(xlabel=f"the same, n = {', '.join(map(str, kept))} downwards")
    ax.set(xlim=SPAN, ylim=(len(order) - 0.5, -0.5), title="Matching wins on average")


def look_of(rule: str) -> dict:
    """The method's own; hollow without the swaps."""
    return style.METHOD["matching"] | {"mfc": "white"} if "greedy" in rule else style.METHOD[rule]


def caption(dataset) -> str:
    config, subsets = results.config_of(dataset), claims.numbers(dataset)
    matched = subsets.relative.sel(rule="matching").median("run")
    diverse = subsets.ratio("determinantal").median("run")
    return (
        f"Matched demonstrations leave {rows.span(matched)} of the error of random subsets. "
        f"They leave {rows.span(diverse)} of the error of determinantal ones, which see no "
        f"gradient. A stack of {config.depth} steps of descent learns from n of {config.m} noisy "
        f"demonstrations. Points are medians of {config.runs} runs, and bars hold the middle 80 % "
        "of them."
    )
