"""Answers after matched and rival demonstrations, beside what matching makes small."""

import numpy as np

from experiments.language.data_sets import called
from experiments.language.lm_gradient_matching import claims
from experiments.language.lm_gradient_matching.claims import BEST, geometric_mean, subset_readings
from experiments.language.lm_gradient_matching.config import DRAWN, RULES
from lsa_lab.harness.draw import style
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

BESIDE = ("stratified", BEST, "k-means", "matching", "matching, whitened")  # random ones
TICKS = (0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.4, 2)


def plot(dataset):
    figure, axes = style.figure(6.75, 2.5, (1, 2))
    first, *_ = answers = [*claims.numbers(dataset).values()]
    plot_ratios(axes[0], answers)
    plot_gaps(axes[1], first.dataset)
    axes[0].set_title(f"Matching leaves {geometric_mean(first.ratio('matching', 'random')):.2f}")
    axes[1].set_title(f"Gaps rank answers by {first.ranks().mean():z.2f}")
    return figure


def plot_ratios(ax, answers):
    """Losses over those of random subsets, geometric means of runs; tasks from the top."""
    style.log_axes(ax, x=True)
    for i, own in enumerate(answers):
        step = 0.2 * (i - (len(answers) - 1) / 2)
        for row, rule in enumerate(BESIDE):
            ratios, look = own.ratio(rule, "random"), style.METHOD[rule]
            ends = np.exp(style.mean_ends(np.log(ratios)[:, None]))
            if np.isfinite(ends).all():  # not known from one run
                ax.plot(ends, [row + step] * 2, "-", color=look["color"], lw=0.8)
            ax.plot(geometric_mean(ratios), row + step, ls="none", **look)
    low, high = ax.get_xlim()
    style.log_axes(ax, x=True, ticks=[tick for tick in TICKS if low <= tick <= high])
    ax.set_xlim(low, high)
    ax.axvline(1, color="grey", lw=0.8)
    ax.set_yticks(range(len(BESIDE)), BESIDE)
    ax.set(xlabel="label cross-entropy / random's")
    ax.set_ylim(len(BESIDE) - 0.5, -0.5)


def plot_gaps(ax, dataset):
    """The answers after every subset against its gap, each run's in units of its random ones."""
    losses, rules = subset_readings(dataset), dataset.rule.values
    gaps = dataset.gap.transpose("run", "subset").values
    random = np.exp(np.log(losses[:, rules == "random"]).mean(1, keepdims=True))
    for rule in (*DRAWN, *RULES):
        look = style.METHOD[rule] | {"ms": 3, "mew": 0.5}
        ax.plot(gaps[:, rules == rule], (losses / random)[:, rules == rule], ls="none", **look)
        if rule not in BESIDE:  # panel a has no name for it
            ax.plot([], [], ls="none", label=rule, **look)
    style.log_axes(ax, y=True)
    ax.set_yticks([0.7, 1, 1.5, 2, 3], ["0.7", "1", "1.5", "2", "3"])
    ax.axhline(1, color="grey", lw=0.8)
    ax.set(xlabel="gap / that of random subsets", ylabel="cross-entropy / random's")
    ax.legend()


def caption(dataset) -> str:
    config, (first, task) = results.config_of(dataset), results.config_of(dataset).tasks[0]
    answers = claims.numbers(dataset)[first]
    ratio, alike = (
        geometric_mean(answers.ratio("matching", rival)) for rival in ("random", "stratified")
    )
    return (
        f"In {called(config.model_name)}, on {task.title}, {config.shots} matched demonstrations "
        f"leave {ratio:.2f} of the label cross-entropy after random ones. They leave {alike:.2f} "
        "of that after random ones with the same shares of labels, and "
        f"{geometric_mean(answers.over_none('matching')):.2f} of that without "
        f"demonstrations. Points are geometric means over {config.runs} pools of {config.pool}, "
        f"and bars are {level()} intervals. In b each point is a subset, in the colours of a."
    )
