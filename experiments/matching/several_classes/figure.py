"""KL of the classes' shares beside A3's table, wrong answers, and what is judged."""

import numpy as np

from experiments.matching import rows
from experiments.matching.several_classes.claims import samples
from experiments.matching.several_classes.config import RULES, TAGS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

SPAN = (1e-5, 0.2)  # of the KL
TICKS = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10)


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.2, 2.6), ((1, 1), (1, 1, 1)))
    divergences(axes[0], dataset, config)
    errors(axes[1], dataset)
    judged(axes[2], dataset, "", "KL", (1e-5, 0.05), True)
    judged(axes[3], dataset, "_shares", "KL / random's", (0.001, 10.0), True)
    judged(axes[4], dataset, "_error", "wrong, less random's", (-0.04, 0.01), False)
    return figure


def divergences(ax, dataset, config):
    ax.axvspan(config.random_low, config.random_high, color="grey", alpha=0.25, lw=0)
    ax.axvspan(SPAN[0], config.matched, color="grey", alpha=0.12, lw=0)
    by_rule(ax, dataset.divergence, SPAN)
    style.log_axes(ax, x=True, ticks=TICKS[:5])
    ax.set(xlim=SPAN, xlabel="KL of shares; grey: A3's table", title="shares of the classes")
    ax.set_ylim(dataset.sizes["classes"] + 1.7, -0.5)  # room for the legend
    ax.legend(loc="lower left")


def errors(ax, dataset):
    low, high = float(dataset.wrong.min()), float(dataset.wrong.max())
    air = 0.1 * (high - low) + 0.01
    by_rule(ax, dataset.wrong, (low - air, high + air))
    ax.set(xlim=(low - air, high + air), xlabel="share of wrong answers", title="descent answers")


def by_rule(ax, values, span):
    places = np.arange(values.sizes["classes"])
    for i, rule in enumerate(RULES):
        runs = values.sel(rule=rule).transpose("run", "classes").values
        rows.means(ax, places + 0.2 * (i - 1), runs, span, label=rule, **style.METHOD[rule])
    ax.set(ylim=(len(places) - 0.5, -0.5))
    ax.set_yticks(places, [f"{classes} classes" for classes in values.classes.values])


def judged(ax, dataset, row, title, span, logarithmic):
    config, claimed = results.config_of(dataset), samples(dataset)
    labels = {
        f"{tag}_{classes}{row}": f"{tag}, {classes}"
        for classes in config.classes
        for tag in ([] if row else ["random"]) + list(TAGS.values())
    }
    if logarithmic:
        style.log_axes(ax, x=True, ticks=[t for t in TICKS if span[0] <= t <= span[1]])
    judged_panel.rows(ax, statements(config), claimed, labels, span)
    ax.set(xlabel=title, title="judged")


def caption(dataset) -> str:
    config, kl = results.config_of(dataset), dataset.divergence.mean("run")
    most = max(config.classes)
    plain, intercept, random = (float(kl.sel(classes=most, rule=rule)) for rule in RULES)
    chance = (most - 1) / (2 * config.n) * (1 - config.n / config.m)
    return (
        f"With {most} classes and {config.n} shots the shares' KL is {random:.2g} at random, "
        f"{plain:.2g} matched without and {intercept:.2g} with an intercept. "
        f"Random choice has (K - 1)/2n (1 - n/m) = {chance:.2g}: A3's .012 to .020 is that of four "
        f"to six classes. Pools of {config.m} with a cluster for each class, d = {config.d}, "
        f"shares declining from {1 + config.decline:g} to {1 - config.decline:g} times their mean. "
        f"a, b: means of {config.runs} runs, 95 % intervals; b: {config.depth} steps of descent "
        f"for each class, queries weighed as the pool; c to e: {judged_panel.KEY}. "
        f"{style.missing(dataset.divergence)} numbers left out as not finite."
    )
