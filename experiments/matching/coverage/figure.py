"""The clusters' shares by size, and what is judged, for each kind of label."""

import numpy as np

from experiments.matching.coverage.claims import (
    over_strata,
    relative,
    relative_divergence,
    samples,
)
from experiments.matching.coverage.config import (
    CLASSES,
    KINDS,
    PROXIES,
    RULES,
    TAGS,
    statements,
)
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

MOST = 7.0  # of the axis of the divergence; who lies above it is an arrow
ROWS = {
    "shares": "KL",
    "shares_intercept": "KL, intercept",
    "shares_later": "KL, intercept, later",
    "minority": "minority's error",
    "favours": "minority's / majority's",
    "strata": "stratified / matching",
}


def plot(dataset):
    figure, axes = style.figure(6.75, 8.0, (3, 2))
    config, ratio = results.config_of(dataset), relative_divergence(dataset)
    by_id = samples(dataset)
    for ax, kind in zip(axes[::2], KINDS, strict=True):
        divergences(ax, ratio.sel(kind=kind))
        ax.axhline(config.shares, color="grey", lw=0.8, ls="--")
        ax.set(title=kind, ylabel="KL of the shares / expected")
    for ax, tag in zip(axes[1::2], TAGS.values(), strict=True):
        names = {f"{tag}_{row}": name for row, name in ROWS.items()}
        names = {id: name for id, name in names.items() if id in by_id}
        style.log_axes(ax, x=True, ticks=(0.01, 0.1, 1, 10))
        judged_panel.rows(ax, statements(config), by_id, names, (0.01, 15.0))
        ax.axvline(1, color="grey", lw=0.8)
        ax.set(xlabel="judged ratio")
    axes[0].legend(ncols=2, fontsize=6, loc="upper left", columnspacing=0.8, handlelength=1.2)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    divergence = relative_divergence(dataset)
    at_most = divergence.sel(kind=CLASSES, n=max(config.sizes)).mean("run")
    plain, intercept, later = (float(at_most.sel(rule=rule)) for rule in PROXIES)
    strata = over_strata(dataset).median("run")
    least, most = float(strata.min()), float(strata.max())
    missing = style.missing(dataset.divergence) + style.missing(relative(dataset))
    return (
        f"Matching keeps the classes' shares by what an intercept says before training: KL "
        f"{intercept:.2g} times that at random, {later:.2g} without that start, {plain:.2g} "
        f"without intercept. That is at n = {max(config.sizes)}. Stratified subsets err "
        f"{least:.2g} to {most:.2g} times as much as matched ones. "
        f"Pools of {config.m} with clusters {1 - config.minority:g} to {config.minority:g}; one "
        "task, a task each, or a class each, which the proxy learns by the logistic loss. Left: "
        f"mean of {config.runs} runs and its 95 % interval; below the dashes the shares are kept. "
        f"Right: {judged_panel.KEY}. Random and stratified: means of {config.random_draws} draws. "
        f"{missing} numbers left out as not finite."
    )


def divergences(ax, ratio):  # [run, n, rule]
    sizes = ratio.n.values
    places = np.arange(len(sizes))
    for i, rule in enumerate(RULES):
        x = places + 0.09 * (i - (len(RULES) - 1) / 2)
        runs = ratio.sel(rule=rule).transpose("run", "n").values
        color = (*style.COLOURS, style.BLACK, "grey")[i]
        look = {"fmt": (*style.MARKERS, "X", "*")[i], "color": color, "elinewidth": 0.8}
        style.mean_points(ax, x, runs, rule, **look)
        for j in np.flatnonzero(runs.mean(0) > MOST):
            ax.annotate("↑", (x[j], MOST), ha="center", va="top", color=color)
    ax.set_xticks(places, [str(size) for size in sizes])
    ax.set(xlabel="n", ylim=(-0.1, MOST))
