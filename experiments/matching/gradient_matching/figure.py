"""Errors of every rule relative to random subsets, and what is judged of its rivals."""

import numpy as np

from experiments.matching import rows
from experiments.matching.gradient_matching.claims import over_rival, relative, samples
from experiments.matching.gradient_matching.config import RIVALS, WHITE, statements
from experiments.matching.gradient_matching.panels import (
    by_size,
    learners,
    look_of,
    medians,
    small_pools,
)
from experiments.matching.learners import tag
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import end_labels

COMPARED = ("best of 5", "determinantal", "matching", WHITE)
SPAN = (0.03, 10.0)  # of errors relative to random subsets


def plot(dataset):
    figure, axes = style.stacked(6.75, (3.5, 2.8), ((1, 1), (1,)))
    relative_by_size(axes[0], dataset)
    all_rules(axes[1], dataset)
    labels = names_of_rows(results.config_of(dataset))
    headline = ("random", *(f"over_{tag(rival)}" for rival in RIVALS), "rivals_on_average")
    headline += ("whitened_many", "whitened_few", "whitened_determinantal", "pool")
    judged(axes[2], dataset, {id: labels[id] for id in headline}, 2.5)
    return figure


def appendix(dataset):
    """Errors and objectives by size, small pools, the learners, and all that is judged."""
    figure, axes = style.stacked(6.75, (2.5, 2.3, 3.4), ((1, 1), (1, 1), (1,)), first="d")
    by_size(axes[:2], dataset)
    small_pools(axes[2], dataset)
    learners(axes[3], dataset)
    judged(axes[4], dataset, names_of_rows(results.config_of(dataset)), 8.0)
    return figure


def relative_by_size(ax, dataset):
    """The headline's two rules and a cheap search, against n."""
    ratio, sizes = relative(dataset), dataset.n.values
    style.log_axes(ax, x=True, y=True, ticks=sizes)
    ax.set(ylim=(0.03, 3), xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
    ends = {"random": 1.0}
    for i, rule in enumerate(COMPARED):
        runs = ratio.sel(rule=rule).values
        x = sizes * 1.06 ** (1 - i)
        medians(ax, x, runs, rule)
        for edge in x[np.quantile(runs, style.QUANTILES[1], axis=0) > 3]:  # a bar that leaves
            ax.plot(edge, 3, "^", color=style.METHOD[rule]["color"], ms=3, clip_on=False)
        ends[rule] = float(np.median(runs[:, -1]))
    ax.axhline(1, color=style.METHOD["random"]["color"], lw=1.2)
    names = {rule: "whitened" if rule == WHITE else rule for rule in ends}
    heights = {names[rule]: height for rule, height in ends.items()}
    end_labels(ax, heights, [style.METHOD[rule]["color"] for rule in ends])
    ax.set(xlabel="n", ylabel="error relative to random subsets", title="matched, and rivals")


def all_rules(ax, dataset):
    """All rules at three sizes, the best on average at the top."""
    ratio, sizes = relative(dataset), dataset.n.values
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
    ax.set(xlabel="error relative to random subsets", xlim=SPAN, ylim=(len(order) - 0.5, -0.5))
    ax.set_title(f"n = {', '.join(map(str, kept))}, downwards")


def names_of_rows(config) -> dict[str, str]:
    most, size = max(config.sizes), config.ablation_size
    return {
        "random": "matching / random, worst n",
        **{f"over_{tag(rival)}": f"matching / {rival}, worst n" for rival in RIVALS},
        "rivals_on_average": "matching / worst rival, all n",
        "whitened_many": "whitened / plain matching, large n",
        "whitened_few": "whitened / plain matching, small n",
        "whitened_determinantal": "whitened / determinantal, worst n",
        "pool": f"matching / the whole pool, n = {size}",
        "mismatched_at_most": f"mismatching / random, n = {most}",
        "mismatched": "mismatching / random, least n",
        "prefix": "prefix / linear proxy, worst length",
        "exact": "objective, swaps / best subset",
        "swaps": "objective, swaps / greedy",
        "checkpoints": "one / all checkpoints",
    }


def judged(ax, dataset, labels, most):
    style.log_axes(ax, x=True, ticks=(0.5, 1, 2, 5))
    judged_rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, judged_rows, samples(dataset), labels, (0.4, most))
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="ratio of errors", title="what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    matched = relative(dataset).sel(rule="matching").median("run")
    diverse = over_rival(dataset, "determinantal").median("run")
    names = ("error", "gap", "small", "by_used", "by_length", "gap_by_swaps")
    return (
        f"Matched demonstrations leave {_span(matched)} of the error of random subsets, and "
        f"{_span(diverse)} of that of determinantal ones. "
        "Determinantal ones are chosen without gradients. "
        f"A stack of {config.depth} steps of descent learns from n of {config.m} noisy "
        f"demonstrations (d = {config.d}, noise {config.noise_std:g}). "
        f"a, b: median of {config.runs} runs and the middle 80 % of them; random: the median of "
        f"{config.random_draws} draws. c: {judged_panel.KEY}. Appendix: d to g: errors and "
        f"objectives by n, small pools, what is trained (n = {config.ablation_size}); h: all "
        f"rows. {sum(style.missing(dataset[name]) for name in names)} numbers left out as not "
        "finite."
    )


def _span(medians):  # [n]
    return f"{float(medians.min()):.2g} to {float(medians.max()):.2g}"
