"""The panels of ``sparse_risk``."""

import numpy as np

from experiments.clipping.clipped import mean_band
from experiments.heads.sparse_risk.places import BAYES, LAWS, PLAIN, SIGNALS
from lsa_lab import results
from lsa_lab.harness import style

SQUARES, DESCENT, RIDGE, PREPROCESSED, LASSO = PLAIN
EQUIVARIANT, EXACT = BAYES
BOUND = r"$R_\mathrm{rot}$"
LOOKS = {  # rule: colour, marker, line
    SQUARES: ("grey", "v", ":"),
    DESCENT: (style.COLOURS[5], "P", "-"),
    EQUIVARIANT: (style.COLOURS[3], "D", "--"),
    PREPROCESSED: (style.COLOURS[1], "s", "-"),
    LASSO: (style.COLOURS[4], "^", "-"),
    EXACT: (style.COLOURS[2], "o", "-"),
}


def ratio(dataset, panel):
    return dataset[panel] / dataset[f"{panel}_bound"]


def curve(ax, x, there, rule, label=None):
    """One rule's mean over runs, at the places where the rule is to be had."""
    runs = there.sel(rule=rule).transpose("run", ...).values
    kept = np.isfinite(runs).all(0)
    colour, marker, line = LOOKS[rule]
    mean_band(ax, np.asarray(x)[kept], runs[:, kept], label or rule, colour, marker, line)


def against_n(ax, dataset):
    settings = results.config_of(dataset)
    style.line(ax, dataset.n, dataset.by_n_bound, f"{BOUND}, ridge")
    for rule in LOOKS:
        curve(ax, dataset.n, dataset.by_n, rule)
    style.log_axes(ax, x=True, y=True, ticks=dataset.n.values)
    ax.set(xlabel="demonstrations n", ylabel="excess risk")
    ax.set_title(f"against n, σ² = {settings.noise_var:g}")
    ax.legend(loc="lower left")


def against(ax, dataset, panel, axis, label):
    ax.axhline(1, color=style.BLACK, lw=1.2)
    for rule in LOOKS:
        curve(ax, dataset[axis], ratio(dataset, panel), rule)
    style.log_axes(ax, x=True, ticks=dataset[axis].values)
    ax.set(xlabel=label, ylabel=f"excess risk / {BOUND}", ylim=(0, 2))


def plateaus(ax, dataset):
    settings = results.config_of(dataset)
    scale = dataset.wide_n / settings.loud
    style.line(ax, dataset.wide_n, dataset.wide_bound * scale, f"{BOUND}, ridge")
    for rule in (DESCENT, PREPROCESSED, LASSO):
        curve(ax, dataset.wide_n, dataset.wide * scale, rule)
    for level, name in ((settings.wide_d, "d"), (settings.s, "s")):
        ax.axhline(level, color="grey", lw=0.8, ls="--")
        words = f"{name} = {level}"
        ax.annotate(words, (0.02, level), (0, -9), ("axes fraction", "data"), "offset points")
    ax.set_ylim(settings.s / 1.5, None)
    style.log_axes(ax, x=True, y=True, ticks=dataset.wide_n.values)
    ax.set(xlabel="demonstrations n", ylabel="n · excess risk / σ²")
    ax.set_title(f"two plateaus: flat, d = {settings.wide_d}, σ² = {settings.loud:g}")


def laws(ax, dataset):
    """Every rule for every law, over the bound."""
    rules = [rule for rule in LOOKS if rule != SQUARES]
    for j, law in enumerate(LAWS):
        there = ratio(dataset, "by_law").sel(law=law)
        for i, rule in enumerate(rules):
            runs = there.sel(rule=rule).values
            colour, marker, _ = LOOKS[rule]
            half = 1.96 * runs.std(ddof=1) / len(runs) ** 0.5
            place = j + 0.15 * (i - (len(rules) - 1) / 2)
            ax.errorbar(place, runs.mean(), half, fmt=marker, color=colour)
    ax.axhline(1, color=style.BLACK, lw=1.2)
    ax.set_xticks(range(3), ["Gaussian\nnon-zeros", "flat\nnon-zeros", "dense Gaussian\n(control)"])
    ax.set(ylabel=f"excess risk / {BOUND}", ylim=(0, None))
    settings = results.config_of(dataset)
    ax.set_title(f"three laws, n = {settings.n}, σ² = {settings.loud:g}")


def duel(ax, dataset):
    settings = results.config_of(dataset)
    for i, signal in enumerate(SIGNALS):
        both = dataset.long.sel(signal=signal)
        lasso = both.sel(rule=LASSO)
        runs = (both.sel(rule=PREPROCESSED) - lasso) / lasso.mean("run") + 1
        colour = style.COLOURS[i]
        name = f"{LAWS[i]} non-zeros"
        mean_band(ax, dataset.length.values, runs.transpose("run", ...).values, name, colour,
                  style.MARKERS[i])  # fmt: skip
    ax.axhline(1, color=style.BLACK, lw=1.2)
    style.log_axes(ax, x=True, ticks=dataset.length.values)
    ax.set(xlabel="demonstrations n", ylabel="preprocessed descent / Lasso")
    ax.set_title(f"who is ahead, d = {settings.d}, σ² = {settings.loud:g}")
    ax.legend()
