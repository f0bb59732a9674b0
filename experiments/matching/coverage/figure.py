"""The clusters' shares in chosen subsets, for each kind of label, and what is judged."""

import numpy as np

from experiments.matching import rows
from experiments.matching.coverage import claims
from experiments.matching.coverage.claims import relative, relative_divergence, strata_ratio
from experiments.matching.coverage.config import CLASSES, ORDER, PROXIES, RULES, SEVERAL_RULES
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level
from lsa_lab.store import parts, results

SPANS = {kind: (1e-3, 20.0) if kind == CLASSES else (0.2, 20.0) for kind in ORDER}
TICKS = (0.001, 0.01, 0.1, 1, 10)
WORDS = ("no intercept", "intercept", "intercept,\nstart left out")
NAMES = {rule: f"matching, {words}" for rule, words in zip(PROXIES, WORDS, strict=True)}
ERRORS = ("minority", "favours", "strata")  # families that are judged
SEVERAL_SPAN = (1e-5, 0.2)  # of the KL of several classes


def plot(dataset):
    ratio = relative_divergence(dataset)
    decades = tuple(np.log10(high / low) for low, high in SPANS.values())
    figure, axes = style.stacked(6.75, (3.8, 2.4), (decades, (1, 1)))
    for ax, kind in zip(axes, ORDER, strict=False):
        divergences(ax, ratio.sel(kind=kind), SPANS[kind])
        ax.axvspan(SPANS[kind][0], claims.KEPT, color="grey", alpha=0.15, lw=0)
        ax.set_title(f"labels: {kind}" if kind == CLASSES else kind)
        ax.set_xlabel("relative to random")
    name_rows(axes[0], ratio.sel(kind=CLASSES))
    axes[0].set_xlabel("KL of the clusters' shares, relative to random")
    plot_judged(axes[3], dataset, ("shares",), (0.003, 20.0), (0.01, 0.1, 1, 10))
    axes[3].set(xlabel="KL / random's", title="judged: shares")
    plot_judged(axes[4], dataset, ERRORS, (0.5, 4.0), (0.5, 1, 2, 4))
    for ax in axes[3:]:
        ax.axvline(1, color="grey", lw=0.8)
    axes[4].set(xlabel="ratio of errors", title="judged: errors")
    return figure


def appendix(dataset):
    """Several classes: KL of their shares beside A3's table, wrong answers, and what is judged."""
    several = parts.part(dataset, "several")
    figure, axes = style.figure(6.75, 2.6, (1, 3), first="f")
    bounds = {statement.id: statement.bounds for statement in evidence(claims, dataset)[0]}
    axes[0].axvspan(*bounds["random"], color="grey", alpha=0.25, lw=0)
    axes[0].axvspan(SEVERAL_SPAN[0], bounds["matched"][1], color="grey", alpha=0.12, lw=0)
    rule_points(axes[0], several.divergence, SEVERAL_SPAN)
    style.log_axes(axes[0], x=True, ticks=(1e-5, 1e-4, 1e-3, 0.01, 0.1))
    axes[0].set(xlabel="KL of shares; grey: A3's table", title="shares of the classes")
    low, high = float(several.wrong.min()), float(several.wrong.max())
    air = 0.1 * (high - low) + 0.01
    rule_points(axes[1], several.wrong, (low - air, high + air))
    axes[1].set(xlabel="share of wrong answers", title="descent answers", yticklabels=[])
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, ncols=len(names), loc="outside upper center")
    plot_judged(axes[2], dataset, ("error",), (-0.05, 0.01))
    axes[2].set(xticks=(-0.04, -0.02, 0), xlabel="wrong, less random's", title="judged: answers")
    return figure


def rule_points(ax, values, span):
    places = np.arange(values.sizes["classes"])
    for i, rule in enumerate(SEVERAL_RULES):
        runs = values.sel(rule=rule).transpose("run", "classes").values
        rows.means(ax, places + 0.2 * (i - 1), runs, span, label=rule, **style.METHOD[rule])
    ax.set(xlim=span, ylim=(len(places) - 0.5, -0.5))
    ax.set_yticks(places, [f"{classes} classes" for classes in values.classes.values])


def divergences(ax, ratio, span):  # [run, n, rule]
    """A row for each rule, in it a point for each n."""
    for i, rule in enumerate(RULES):
        runs = ratio.sel(rule=rule).transpose("run", "n").values
        rows.means(ax, i + offsets(ratio), runs, span, **look_of(rule))
    ax.axvline(1, color="grey", lw=0.8)
    style.log_axes(ax, x=True, ticks=[tick for tick in TICKS if tick >= span[0]])
    ax.set(xlim=span, ylim=(len(RULES) - 0.5, -0.5), yticks=range(len(RULES)), yticklabels=[])


def name_rows(ax, ratio):
    """The rules, and which of a row's points is which n."""
    ax.set_yticks(range(len(RULES)), [NAMES.get(rule, rule) for rule in RULES])
    rule = PROXIES[1]
    ends = style.mean_ends(ratio.sel(rule=rule).transpose("run", "n").values)[1]
    # Two or more runs have an interval; without one the name stands at the line of random subsets.
    ends = np.clip(np.nan_to_num(ends, nan=1.0), SPANS[CLASSES][0], 1.0)
    for step, n, end in zip(offsets(ratio), ratio.n.values, ends, strict=True):
        direct_label(ax, end, RULES.index(rule) + step, f"n = {n}", "dimgrey")


def offsets(ratio) -> np.ndarray:
    """Where in its row each n has its point, from the top."""
    return 0.26 * (np.arange(ratio.sizes["n"]) - (ratio.sizes["n"] - 1) / 2)


def look_of(rule: str) -> dict:
    """The method's own; hollow without what the intercept says before training."""
    if rule == PROXIES[2]:
        return style.METHOD[PROXIES[1]] | {"mfc": "white"}
    return style.METHOD[rule]


def plot_judged(ax, dataset, families, span, ticks=None):
    if ticks:
        style.log_axes(ax, x=True, ticks=ticks)
    statements, samples = evidence(claims, dataset)
    ids = [cell.id for cell in cells_of(statements) if cell.family in families]
    judged_panel.rows(ax, statements, samples, span, ids)


def caption(dataset) -> str:
    config, several = results.config_of(dataset), parts.part(dataset, "several")
    at_most = relative_divergence(dataset).sel(kind=CLASSES, n=max(config.sizes)).mean("run")
    plain, intercept, later = (float(at_most.sel(rule=rule)) for rule in PROXIES)
    strata = strata_ratio(dataset).median("run")
    most, shots = max(config.several.classes), config.several.n
    kl = several.divergence.sel(classes=most).mean("run")
    own, random = (float(kl.sel(rule=rule)) for rule in SEVERAL_RULES[1:])
    missing = sum(map(style.missing, (dataset.divergence, relative(dataset), several.divergence)))
    return (
        f"With an intercept, matching leaves {intercept:.2g} of the KL of classes' shares that "
        f"random choice has. It leaves {later:.2g} times that KL without the gradients before "
        f"training, and {plain:.2g} times without an intercept. Stratified subsets err "
        f"{float(strata.min()):.2g} to {float(strata.max()):.2g} times as matched ones do. "
        f"a to g show means of runs, {config.runs} in a to c, with {level()} intervals. In f "
        f"{most} classes at {shots} shots have a KL of {random:.2g} at random and of {own:.2g} "
        f"with an intercept. {missing} numbers were not finite."
    )
