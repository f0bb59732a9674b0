"""KL of the classes' shares beside A3's table, wrong answers, and what is judged."""

import numpy as np

from experiments.matching import rows
from experiments.matching.several_classes import claims
from experiments.matching.several_classes.config import RULES
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

SPAN = (1e-5, 0.2)  # of the KL
TICKS = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10)


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.2, 2.6), ((1, 1), (1, 1, 1)))
    judgement = evidence(claims, dataset)
    divergences(axes[0], dataset, judgement[0])
    errors(axes[1], dataset)
    judged(axes[2], judgement, ("random", "matched"), "KL", (1e-5, 0.05))
    judged(axes[3], judgement, ("shares",), "KL / random's", (0.001, 10.0))
    judged(axes[4], judgement, ("error",), "wrong, less random's", (-0.04, 0.01))
    return figure


def divergences(ax, dataset, statements):
    bounds = {statement.id: statement.bounds for statement in statements}
    ax.axvspan(*bounds["random"], color="grey", alpha=0.25, lw=0)
    ax.axvspan(SPAN[0], bounds["matched"][1], color="grey", alpha=0.12, lw=0)
    rule_points(ax, dataset.divergence, SPAN)
    style.log_axes(ax, x=True, ticks=TICKS[:5])
    ax.set(xlim=SPAN, xlabel="KL of shares; grey: A3's table", title="shares of the classes")
    ax.set_ylim(dataset.sizes["classes"] + 1.7, -0.5)  # room for the legend
    ax.legend(loc="lower left")


def errors(ax, dataset):
    low, high = float(dataset.wrong.min()), float(dataset.wrong.max())
    air = 0.1 * (high - low) + 0.01
    rule_points(ax, dataset.wrong, (low - air, high + air))
    ax.set(xlim=(low - air, high + air), xlabel="share of wrong answers", title="descent answers")


def rule_points(ax, values, span):
    places = np.arange(values.sizes["classes"])
    for i, rule in enumerate(RULES):
        runs = values.sel(rule=rule).transpose("run", "classes").values
        rows.means(ax, places + 0.2 * (i - 1), runs, span, label=rule, **style.METHOD[rule])
    ax.set(ylim=(len(places) - 0.5, -0.5))
    ax.set_yticks(places, [f"{classes} classes" for classes in values.classes.values])


def judged(ax, judgement, families, title, span):
    """The cells of some families, by the number of classes."""
    statements, samples = judgement
    cells = [cell for cell in cells_of(statements) if cell.family in families]
    counts = list(dict.fromkeys(cell.case["classes"] for cell in cells))
    cells.sort(key=lambda cell: counts.index(cell.case["classes"]))
    if span[0] > 0:
        style.log_axes(ax, x=True, ticks=[t for t in TICKS if span[0] <= t <= span[1]])
    judged_panel.rows(ax, statements, samples, span, [cell.id for cell in cells])
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
        f"a, b: means of {config.runs} runs, {level()} intervals; b: {config.depth} steps of "
        f"descent for each class, queries weighed as the pool; c to e: {judged_panel.KEY}. "
        f"{style.missing(dataset.divergence)} numbers left out as not finite."
    )
