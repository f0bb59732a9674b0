"""The classes' shares in chosen subsets, of two classes and of several."""

import numpy as np

from experiments.matching import rows
from experiments.matching.coverage import claims
from experiments.matching.coverage.claims import relative_divergence
from experiments.matching.coverage.config import CLASSES, PROXIES, RULES, SEVERAL_RULES
from lsa_lab.harness.draw import style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import parts, results

SPAN = (1e-3, 20.0)  # of the KL relative to random subsets
NAMES = ("matching, no intercept", PROXIES[1], f"{PROXIES[1]},\nstart left out", *RULES[3:])
SEVERAL_SPAN = (3e-4, 0.2)  # of the KL of several classes


def plot(dataset):
    several = parts.part(dataset, "several")
    figure, axes = style.figure(6.75, 3.2, (1, 2))
    divergences(axes[0], relative_divergence(dataset).sel(kind=CLASSES))
    axes[0].set(
        title="Intercept and start keep shares", xlabel="KL of shares / that expected at random"
    )
    bounds = {statement.id: statement.bounds for statement in evidence(claims, dataset)[0]}
    axes[1].axvspan(*bounds["random"], color="grey", alpha=0.25, lw=0)
    axes[1].axvspan(SEVERAL_SPAN[0], bounds["matched"][1], color="grey", alpha=0.12, lw=0)
    rule_points(axes[1], several.divergence, SEVERAL_SPAN)
    style.log_axes(axes[1], x=True, ticks=(1e-3, 0.01, 0.1))
    axes[1].set(xlabel="KL to a test set; grey: A3's table", title="An intercept comes nearest")
    figure.legend(*axes[1].get_legend_handles_labels(), ncols=3, loc="outside upper center")
    return figure


def rule_points(ax, values, span):
    places = np.arange(values.sizes["classes"])
    for i, rule in enumerate(SEVERAL_RULES):
        runs = values.sel(rule=rule).transpose("run", "classes").values
        rows.means(ax, places + 0.2 * (i - 1), runs, span, label=rule, **style.METHOD[rule])
    ax.set(xlim=span, ylim=(len(places) - 0.5, -0.5))
    ax.set_yticks(places, [f"{classes} classes" for classes in values.classes.values])


def divergences(ax, ratio):  # [run, n, rule]
    """A row for each rule, in it a point for each n, from the top."""
    steps = 0.26 * (np.arange(ratio.sizes["n"]) - (ratio.sizes["n"] - 1) / 2)
    looks = style.METHOD | {PROXIES[2]: style.METHOD[PROXIES[1]] | {"mfc": "white"}}
    for i, rule in enumerate(RULES):
        runs = ratio.sel(rule=rule).transpose("run", "n").values
        rows.means(ax, i + steps, runs, SPAN, **looks[rule])
    ax.axvline(1, color="grey", lw=0.8)
    ax.axvspan(SPAN[0], claims.KEPT, color="grey", alpha=0.15, lw=0)
    style.log_axes(ax, x=True, ticks=(0.001, 0.01, 0.1, 1, 10))
    ax.set(xlim=SPAN, ylim=(len(RULES) - 0.5, -0.5))
    ax.set_yticks(range(len(RULES)), NAMES)


def caption(dataset) -> str:
    config, several = results.config_of(dataset), parts.part(dataset, "several")
    ratios = relative_divergence(dataset).sel(kind=CLASSES).mean("run")
    plain, intercept, later = (rows.span(ratios.sel(rule=rule)) for rule in PROXIES)
    most = max(config.several.classes)
    kl = several.divergence.sel(classes=most).mean("run")
    own, random = (float(kl.sel(rule=rule)) for rule in SEVERAL_RULES[1:])
    return (
        f"Without an intercept matched subsets miss two classes' shares by {plain} times the KL "
        f"of random ones. With one it is {intercept} times, by a theorem, and {later} times "
        "without gradients from before training. Grey in a counts as kept. "
        f"In b {most} classes have a KL of {random:.2g} at random, {own:.2g} with "
        f"an intercept. A3's table is pale for matching, dark for random. Bars are {level()} "
        "intervals."
    )
