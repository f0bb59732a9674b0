"""The panels of `sparse_risk`: every rule against n, noise, sparsity and the kind of weights."""

import numpy as np

from experiments.heads.rule_names import EQUIVARIANT, LASSO, SPARSE_BAYES
from experiments.heads.sparse_risk.claims import over_bound
from experiments.heads.sparse_risk.config import DESCENT, PREPROCESSED, SIGNALS, SQUARES, WEIGHTS
from lsa_lab import results
from lsa_lab.harness import style

BOUND = r"$R_\mathrm{rot}$"
LOOKS = {  # rule: color, marker, line
    SQUARES: ("grey", "v", ":"),
    DESCENT: (style.COLOURS[5], "P", "-"),
    EQUIVARIANT: (style.COLOURS[3], "D", "--"),
    PREPROCESSED: (style.COLOURS[1], "s", "-"),
    LASSO: (style.COLOURS[4], "^", "-"),
    SPARSE_BAYES: (style.COLOURS[2], "o", "-"),
}


def curve(ax, x, risks, rule, label=None):
    """One rule's mean over runs, at the places where the rule is to be had."""
    runs = risks.sel(rule=rule).transpose("run", ...).values
    kept = np.isfinite(runs).all(0)
    color, marker, line = LOOKS[rule]
    style.mean_band(ax, np.asarray(x)[kept], runs[:, kept], label or rule, color, marker, line)


def against_n(ax, dataset):
    config = results.config_of(dataset)
    style.line(ax, dataset.n, dataset.by_n_bound, f"{BOUND}, ridge")
    for rule in LOOKS:
        curve(ax, dataset.n, dataset.by_n, rule)
    style.log_axes(ax, x=True, y=True, ticks=dataset.n.values)
    ax.set(xlabel="demonstrations n", ylabel="excess risk")
    ax.set_title(f"against n, σ² = {config.noise_var:g}")
    ax.legend(loc="lower left")


def against(ax, dataset, panel, axis, label):
    ax.axhline(1, color=style.BLACK, lw=1.2)
    for rule in LOOKS:
        curve(ax, dataset[axis], over_bound(dataset, panel), rule)
    style.log_axes(ax, x=True, ticks=dataset[axis].values)
    ax.set(xlabel=label, ylabel=f"excess risk / {BOUND}", ylim=(0, 2))


def plateaus(ax, dataset):
    config = results.config_of(dataset)
    scale = dataset.wide_n / config.loud
    style.line(ax, dataset.wide_n, dataset.wide_bound * scale, f"{BOUND}, ridge")
    for rule in (DESCENT, PREPROCESSED, LASSO):
        curve(ax, dataset.wide_n, dataset.wide * scale, rule)
    for level, name in ((config.wide_d, "d"), (config.s, "s")):
        ax.axhline(level, color="grey", lw=0.8, ls="--")
        words = f"{name} = {level}"
        ax.annotate(words, (0.02, level), (0, -9), ("axes fraction", "data"), "offset points")
    ax.set_ylim(config.s / 1.5, None)
    style.log_axes(ax, x=True, y=True, ticks=dataset.wide_n.values)
    ax.set(xlabel="demonstrations n", ylabel="n · excess risk / σ²")
    ax.set_title(f"two plateaus: flat, d = {config.wide_d}, σ² = {config.loud:g}")


def kinds_of_weights(ax, dataset):
    """Every rule for every kind of weights, over the bound."""
    config = results.config_of(dataset)
    rules = [rule for rule in LOOKS if rule != SQUARES]
    for i, rule in enumerate(rules):
        color, marker, _ = LOOKS[rule]
        runs = over_bound(dataset, "by_law").sel(rule=rule).transpose("run", "law").values
        x = np.arange(len(WEIGHTS)) + 0.15 * (i - (len(rules) - 1) / 2)
        style.mean_points(ax, x, runs, fmt=marker, color=color)
    ax.axhline(1, color=style.BLACK, lw=1.2)
    ax.set_xticks(range(3), ["Gaussian\nnon-zeros", "flat\nnon-zeros", "dense Gaussian\n(control)"])
    ax.set(ylabel=f"excess risk / {BOUND}", ylim=(0, None))
    ax.set_title(f"kinds of weights, n = {config.n}, σ² = {config.loud:g}")


def duel(ax, dataset):
    """Preprocessed descent over the Lasso, against n."""
    config = results.config_of(dataset)
    for i, signal in enumerate(SIGNALS):
        both = dataset.long.sel(signal=signal)
        lasso = both.sel(rule=LASSO)
        runs = (both.sel(rule=PREPROCESSED) - lasso) / lasso.mean("run") + 1
        values, name = runs.transpose("run", ...).values, f"{WEIGHTS[i]} non-zeros"
        color, marker = style.COLOURS[i], style.MARKERS[i]
        style.mean_band(ax, dataset.length.values, values, name, color, marker)
    ax.axhline(1, color=style.BLACK, lw=1.2)
    style.log_axes(ax, x=True, ticks=dataset.length.values)
    ax.set(xlabel="demonstrations n", ylabel="preprocessed descent / Lasso")
    ax.set_title(f"who is ahead, d = {config.d}, σ² = {config.loud:g}")
    ax.legend()
