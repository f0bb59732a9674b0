"""The clusters' shares by size, and what is judged, for each kind of label."""

import numpy as np

from experiments.matching import judged
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
from lsa_lab.harness import style

MOST = 7.0  # of the axis of the divergence; who lies above it is an arrow
ROWS = {
    "shares": "KL",
    "shares_intercept": "KL, intercept",
    "minority": "minority's error",
    "favours": "minority's / majority's",
    "strata": "stratified / matching",
}


def plot(dataset):
    figure, axes = style.figure(9.6, 5.6, (2, 3))
    config, ratio = results.config_of(dataset), relative_divergence(dataset)
    for ax, kind in zip(axes[:3], KINDS, strict=True):
        divergences(ax, ratio.sel(kind=kind))
        ax.axhline(config.shares, color="grey", lw=0.8, ls="--")
        ax.set_title(kind)
    for ax, tag in zip(axes[3:], TAGS.values(), strict=True):
        names = {f"{tag}_{row}": name for row, name in ROWS.items()}
        style.log_axes(ax, x=True, ticks=(0.01, 0.03, 0.1, 0.3, 1, 3))
        judged.rows(ax, statements(config), samples(dataset), names, (0.01, 8.0))
        ax.axvline(1, color="grey", lw=0.8)
        ax.set(xlabel="judged ratio")
    axes[0].set_ylabel("KL of the shares / expected at random")
    axes[0].legend(ncols=2, loc="upper left", columnspacing=0.8, handlelength=1.2)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    divergence = relative_divergence(dataset)
    at_most = divergence.sel(kind=CLASSES, n=max(config.sizes)).mean("run")
    plain, intercept = (float(at_most.sel(rule=rule)) for rule in PROXIES)
    strata = over_strata(dataset).median("run")
    least, most = float(strata.min()), float(strata.max())
    missing = style.missing(dataset.divergence) + style.missing(relative(dataset))
    return (
        f"Matching keeps the classes' shares if its proxy has an intercept (KL {intercept:.2g} "
        f"times that at random; {plain:.2g} without); stratified subsets err {least:.2g} to "
        f"{most:.2g} times as much as matched ones. "
        f"Both at n = {max(config.sizes)}; at w = 0 the intercept's gradient is the share. "
        f"Pools of {config.m} with clusters {1 - config.minority:g} to {config.minority:g}; one "
        "task, a task each, or a class each, which the proxy learns by the logistic loss. Top: "
        f"mean of {config.runs} runs and its 95 % interval; below the dashes the shares are kept. "
        f"Bottom: {judged.KEY}. Random and stratified: means of {config.random_draws} draws. "
        f"{missing} numbers left out as not finite."
    )


def divergences(ax, ratio):  # [run, n, rule]
    sizes = ratio.n.values
    places = np.arange(len(sizes))
    for i, rule in enumerate(RULES):
        x = places + 0.09 * (i - (len(RULES) - 1) / 2)
        runs = ratio.sel(rule=rule).transpose("run", "n").values
        color = (*style.COLOURS, style.BLACK)[i]
        look = {"fmt": (*style.MARKERS, "X")[i], "color": color, "elinewidth": 0.8}
        style.mean_points(ax, x, runs, rule, **look)
        for j in np.flatnonzero(runs.mean(0) > MOST):
            ax.annotate("↑", (x[j], MOST), ha="center", va="top", color=color)
    ax.set_xticks(places, [str(size) for size in sizes])
    ax.set(xlabel="n", ylim=(-0.1, MOST))
