"""The clusters' shares in chosen subsets, for each kind of label, and what is judged."""

import numpy as np

from experiments.matching import rows
from experiments.matching.coverage import claims
from experiments.matching.coverage.claims import over_matching, relative, relative_divergence
from experiments.matching.coverage.config import CLASSES, ORDER, PROXIES, RULES
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

SPANS = {kind: (1e-3, 20.0) if kind == CLASSES else (0.2, 20.0) for kind in ORDER}
TICKS = (0.001, 0.01, 0.1, 1, 10)
WORDS = ("no intercept", "intercept", "intercept,\nstart left out")
NAMES = {rule: f"matching, {words}" for rule, words in zip(PROXIES, WORDS, strict=True)}
SHARES = ("shares", "shares_whitened")  # families that are judged, in either panel
ERRORS = ("minority", "favours", "strata", "whitened")


def plot(dataset):
    ratio = relative_divergence(dataset)
    decades = tuple(np.log10(high / low) for low, high in SPANS.values())
    figure, axes = style.stacked(6.75, (3.8, 3.2), (decades, (1, 1)))
    for ax, kind in zip(axes, ORDER, strict=False):
        divergences(ax, ratio.sel(kind=kind), SPANS[kind])
        ax.axvspan(SPANS[kind][0], claims.KEPT, color="grey", alpha=0.15, lw=0)
        ax.set_title(f"labels: {kind}" if kind == CLASSES else kind)
        ax.set_xlabel("relative to random")
    name_rows(axes[0], ratio.sel(kind=CLASSES))
    axes[0].set_xlabel("KL of the clusters' shares, relative to random")
    judged(axes[3], dataset, SHARES, (0.003, 20.0), (0.01, 0.1, 1, 10))
    axes[3].set(xlabel="KL / random's", title="judged: shares")
    judged(axes[4], dataset, ERRORS, (0.5, 4.0), (0.5, 1, 2, 4))
    axes[4].set(xlabel="ratio of errors", title="judged: errors")
    return figure


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


def judged(ax, dataset, families, span, ticks):
    style.log_axes(ax, x=True, ticks=ticks)
    statements, samples = evidence(claims, dataset)
    ids = [cell.id for cell in cells_of(statements) if cell.family in families]
    judged_panel.rows(ax, statements, samples, span, ids)
    ax.axvline(1, color="grey", lw=0.8)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    divergence = relative_divergence(dataset)
    at_most = divergence.sel(kind=CLASSES, n=max(config.sizes)).mean("run")
    plain, intercept, later = (float(at_most.sel(rule=rule)) for rule in PROXIES)
    strata = over_matching(dataset, "stratified").median("run")
    least, most = float(strata.min()), float(strata.max())
    missing = style.missing(dataset.divergence) + style.missing(relative(dataset))
    return (
        f"Matching keeps the classes' shares by what an intercept says before training: KL "
        f"{intercept:.2g} times that at random, {later:.2g} without that start, {plain:.2g} "
        f"without intercept. That is at n = {max(config.sizes)}. Stratified subsets keep them by "
        f"design and err {least:.2g} to {most:.2g} times as much as matched ones. "
        f"a: labels are classes; b: one task for both clusters; c: a task each; means of "
        f"{config.runs} runs, {level()} intervals; grey: kept. d, e: {judged_panel.KEY}; at the "
        f"worst n, d's classes at the largest. Pools of {config.m}, clusters "
        f"{1 - config.minority:g} to {config.minority:g}; random and stratified: means of "
        f"{config.random_draws} draws; {missing} numbers left out as not finite."
    )
