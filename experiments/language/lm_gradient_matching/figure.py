"""Answers after matched and rival demonstrations, beside what matching makes small."""

import numpy as np

from experiments.language.data_sets import cell_ids
from experiments.language.lm_gradient_matching import claims
from experiments.language.lm_gradient_matching.answers import (
    BEST,
    plain_reading,
    rule_readings,
    subset_readings,
)
from experiments.language.lm_gradient_matching.config import DRAWN, RULES
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.lm import readings
from lsa_lab.store import results

BESIDE = ("stratified", BEST, "k-means", "matching", "matching, whitened")  # random ones
TICKS = (0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.4, 2)
CURVES = ("random", *BESIDE, "mismatching")


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.0, 2.5), ((1, 1), (1, 1)))
    judged = dataset.sel(n=results.config_of(dataset).shots)
    plot_ratios(axes[0], judged, readings.cross_entropy)
    axes[0].set(xlabel="label cross-entropy / random's", title="answers")
    plot_ratios(axes[1], judged, readings.cross_entropy_after_best_shift)
    axes[1].set(xlabel="the same after the best shift", title="answers but for label bias")
    axes[1].set_yticklabels([])
    plot_gaps(axes[2], judged.isel(task=0))
    plot_judged(axes[3], dataset, dataset.task.values[0])
    return figure


def appendix(dataset):
    """Two more readings, and of every other task what is judged, of all sizes their answers."""
    names = dataset.task.values
    heights = [2.0] + [2.5] * (len(names) if dataset.sizes["n"] > 1 else len(names) - 1)
    figure, axes = style.stacked(6.75, heights, [(1, 1)] * len(heights), first="e")
    judged = dataset.sel(n=results.config_of(dataset).shots)
    for ax, name in zip(axes, ("auc", "accuracy"), strict=False):
        plot_ratios(ax, judged, getattr(readings, name))
        ax.set(xlabel=f"{name.replace('auc', 'AUC')} / random's")
    axes[1].set_yticklabels([])
    for i, name in enumerate(names[len(names) + 1 - len(heights) :]):
        plot_sizes(axes[2 * i + 2], dataset.sel(task=name))
        plot_judged(axes[2 * i + 3], dataset, name)
    return figure


def plot_ratios(ax, dataset, reading):
    """Readings over those of random subsets, geometric means of runs; tasks from the top."""
    names = dataset.task.values
    style.log_axes(ax, x=True)
    for i, name in enumerate(names):
        values = rule_readings(dataset.sel(task=name), reading)
        step = 0.2 * (i - (len(names) - 1) / 2)
        for row, rule in enumerate(BESIDE):
            ratios = np.log(values[rule] / values["random"])
            half = (style.mean_ends(ratios[:, None])[1] - ratios.mean())[0]
            ends = np.exp(ratios.mean() + np.array([-half, half]))
            look = style.METHOD[rule]
            if np.isfinite(half):  # not known from one run
                ax.plot(ends, [row + step] * 2, "-", color=look["color"], lw=0.8)
            ax.plot(np.exp(ratios.mean()), row + step, ls="none", **look)
    low, high = ax.get_xlim()
    style.log_axes(ax, x=True, ticks=[tick for tick in TICKS if low <= tick <= high])
    ax.set_xlim(low, high)
    ax.axvline(1, color="grey", lw=0.8)
    ax.set_yticks(range(len(BESIDE)), BESIDE)
    ax.set_ylim(len(BESIDE) - 0.5, -0.5)


def plot_gaps(ax, dataset):
    """The answers after every subset against its gap, each run's in units of its random ones."""
    losses, rules = subset_readings(dataset), dataset.rule.values
    gaps = dataset.gap.transpose("run", "subset").values
    random = np.exp(np.log(losses[:, rules == "random"]).mean(1, keepdims=True))
    for rule in (*DRAWN, *RULES):
        look = style.METHOD[rule] | {"ms": 3, "mew": 0.5}
        ax.plot(gaps[:, rules == rule], (losses / random)[:, rules == rule], ls="none", **look)
    style.log_axes(ax, y=True)
    ax.set_yticks([0.7, 1, 1.5, 2, 3], ["0.7", "1", "1.5", "2", "3"])
    ax.axhline(1, color="grey", lw=0.8)
    ax.set(xlabel="gap / that of random subsets", ylabel="cross-entropy / random's")
    ax.set_title("gap and answers")


def plot_sizes(ax, dataset):
    """The answers by the number of demonstrations, one task."""
    sizes = dataset.n.values
    style.log_axes(ax, x=True, ticks=sizes)
    for i, rule in enumerate(CURVES):
        losses = np.stack([rule_readings(dataset.sel(n=n))[rule] for n in sizes], axis=1)
        style.mean_points(ax, sizes * 1.02 ** (i - 3), losses, rule, ls="-", **style.METHOD[rule])
    ax.axhline(plain_reading(dataset).mean(), color=style.BLACK, lw=0.8, ls=":")
    ax.set(
        xlabel="demonstrations",
        ylabel="label cross-entropy",
        title=str(dataset.task.values).replace("_", " "),
    )


def plot_judged(ax, dataset, name):
    statements, samples = evidence(claims, dataset)
    ids = cell_ids(statements, name, [family.id for family in statements])
    judged_panel.rows(ax, statements, samples, (0.0, 2.0), ids)
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="ratio, or correlation", title="what is judged")


def caption(dataset) -> str:
    config, (first, task) = results.config_of(dataset), results.config_of(dataset).tasks[0]
    answers = claims.numbers(dataset)[first]
    ratio, alike = (
        np.exp(np.log(answers.over("matching", rival)).mean()) for rival in ("random", "stratified")
    )
    answered = f" answered by {config.target_name or config.target}," if config.target else ""
    return (
        f"{config.model_name}, on {task.title}:{answered} {config.shots} matched demonstrations "
        f"leave {ratio:.2f} of the label cross-entropy after random ones. They leave {alike:.2f} "
        "of that after random ones with the same shares of labels. Points are geometric means over "
        f"{config.runs} pools of {config.pool}. In c each point is a subset. Panel d shows "
    )
