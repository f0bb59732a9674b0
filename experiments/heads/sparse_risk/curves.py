"""The panels of `sparse_risk`: every rule against n, noise, sparsity and the kind of weights."""

import numpy as np

from experiments.heads.rule_names import EQUIVARIANT, LASSO, SPARSE_BAYES
from experiments.heads.sparse_risk import claims
from experiments.heads.sparse_risk.claims import BOUND
from experiments.heads.sparse_risk.config import DESCENT, PREPROCESSED, SIGNALS, SQUARES, WEIGHTS
from experiments.heads.sparse_risk.differences import over_bound
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, off_scale
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

OVER = f"excess risk / {BOUND}"
LINES = {  # of the rules beside ridge, from the worst to the best
    SQUARES: ":",
    DESCENT: "-",
    EQUIVARIANT: "--",
    PREPROCESSED: "-",
    LASSO: "-",
    SPARSE_BAYES: "-",
}
# The judged rows, from the top: whose risk is to be less, and ratios.
ORDERS = ("ridge", "preprocessed", "noise", "less_sparse", "lasso", "bayes")
ORDERS += ("dense", "gaussian", "flat")
RATIOS = ("exact", "bound", "nonlinear", "gain", "plateau", "stays")


def look(rule: str) -> dict:
    return style.METHOD["descent" if rule == DESCENT else rule]


def curve(ax, x, risks, rule):
    """One rule's mean over runs, at the places where the rule is to be had."""
    runs = risks.sel(rule=rule).transpose("run", ...).values
    kept = np.isfinite(runs).all(0)
    x, runs = np.asarray(x)[kept], runs[:, kept]
    style.mean_band(ax, x, runs, None, **look(rule), style=LINES[rule])
    return x, runs.mean(0)


def against(ax, dataset, panel, axis, label, names=()):
    """Every rule over the bound, some named at their last point."""
    ax.axhline(1, color=style.BLACK, lw=1.2)
    style.log_axes(ax, x=True, ticks=dataset[axis].values)
    ax.set(xlabel=label, ylabel=OVER, ylim=(0, 2))
    for rule in LINES:
        x, risks = curve(ax, dataset[axis], over_bound(dataset, panel), rule)
        off_scale(ax, x, risks, look(rule)["color"])
        if rule in names and len(x):
            direct_label(ax, x[-1], risks[-1], rule, look(rule)["color"], (-2, 5))


def judged(ax, dataset, ids, span):
    judged_panel.rows(ax, *evidence(claims, dataset), span, ids)


def plateaus(ax, dataset):
    config = results.config_of(dataset)
    scale = dataset.wide_n / config.loud
    style.line(ax, dataset.wide_n, dataset.wide_bound * scale)
    for rule in (DESCENT, PREPROCESSED, LASSO):
        x, risks = curve(ax, dataset.wide_n, dataset.wide * scale, rule)
        above = 3 if rule == PREPROCESSED else -5
        direct_label(ax, x[0], risks[0], rule, look(rule)["color"], (6, above))
    for level, name, place in ((config.wide_d, "d", x[-1]), (config.s, "s", x[0])):
        ax.axhline(level, color="grey", lw=0.8, ls=":")
        direct_label(ax, place, level, f"{name} = {level}", "dimgrey", (0, -3))
    ax.set_ylim(config.s / 1.5, None)
    style.log_axes(ax, x=True, y=True, ticks=dataset.wide_n.values)
    ax.set(xlabel="demonstrations n", ylabel="n · excess risk / σ²")


def kinds_of_weights(ax, dataset):
    """A row for each rule: filled, open and pale points for the kinds of weights."""
    rules, faces = list(LINES), ({}, {"mfc": "white"}, {"alpha": 0.35})
    for row, rule in enumerate(rules):
        runs = over_bound(dataset, "by_law").sel(rule=rule).transpose("run", "law").values
        for values, face in zip(runs.T, faces, strict=True):
            ends = np.ravel(style.mean_ends(values[:, None]))
            ax.plot(ends, [row, row], "-", color=look(rule)["color"])
            point = look(rule) | {"marker": look(rule)["marker"] or "|"}
            ax.plot(values.mean(), row, **point, ls="none", ms=5, **face)
            if rule == SPARSE_BAYES:
                kind = WEIGHTS[runs.T.tolist().index(values.tolist())]
                direct_label(ax, values.mean(), row, kind, look(rule)["color"], (3, -5))
    ax.axvline(1, color=style.BLACK, lw=1.2)
    ax.set_yticks(range(len(rules)), rules, fontsize=7)
    ax.set(xlabel=OVER, xlim=(0, 1.7), ylim=(len(rules) - 0.2, -0.6))
    direct_label(ax, 1, -0.4, "ridge", style.BLACK, (3, 0))


def duel(ax, dataset):
    """Preprocessed descent over the Lasso, against n."""
    looks = ((None, -6), ("white", 5))
    for signal, name, (face, above) in zip(SIGNALS, WEIGHTS, looks, strict=False):
        both = dataset.long.sel(signal=signal)
        lasso = both.sel(rule=LASSO)
        runs = (both.sel(rule=PREPROCESSED) - lasso) / lasso.mean("run") + 1
        n, values = dataset.length.values, runs.transpose("run", ...).values
        style.mean_band(ax, n, values, None, **look(PREPROCESSED))
        ax.lines[-1].set(mfc=face or look(PREPROCESSED)["color"])
        place = (n[-1], values[:, -1].mean())
        direct_label(ax, *place, name, look(PREPROCESSED)["color"], (0, above))
    ax.axhline(1, color=style.BLACK, lw=1.2)
    style.log_axes(ax, x=True, ticks=dataset.length.values)
    ax.set(xlabel="demonstrations n", ylabel="preprocessed descent / Lasso")
