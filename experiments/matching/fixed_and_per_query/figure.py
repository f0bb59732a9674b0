"""Errors by how many demonstrations are fixed; noisy pools; what is judged."""

import numpy as np

from experiments.matching import rows
from experiments.matching.fixed_and_per_query import claims
from experiments.matching.fixed_and_per_query.claims import best_share
from experiments.matching.fixed_and_per_query.config import (
    KINDS,
    LEARNERS,
    MIXED,
    NOISY_KINDS,
    NOISY_RULES,
    OUTLIERS,
)
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level

LOOKS = (("descent", "^"), ("ridge", "v"), ("softmax", "s"))  # of learners, in their order
# Families that are judged: of prompts with both parts, and of noisy pools.
SHARES = ("several_tasks", "one_task", "random", "part")
NOISY = ("gain_kept", "outliers")
SPAN = (0.004, 20.0)  # of errors relative to random subsets
PICKED = (0.0, 6.0)  # of outliers among the chosen over their share in the pool


def plot(dataset):
    prompts = claims.numbers(dataset)
    figure, axes = style.stacked(6.75, (2.3, 2.4), ((1, 1, 1), (1,)))
    random = prompts.logs.sel(rule="random", fixed=prompts.n)
    relative = np.exp(prompts.logs.sel(rule="matching") - random)
    for ax, kind in zip(axes, KINDS, strict=False):
        learner_lines(ax, relative.sel(kind=kind))
        ax.set(title=kind, xlabel=f"fixed for all queries, of {prompts.n}")
    axes[0].set_ylabel("error relative to random")
    axes[0].legend(loc="best")
    plot_judged(axes[3], dataset, SHARES, (0.2, 2.0), (0.2, 0.5, 1, 2), "ratio of errors")
    return figure


def appendix(dataset):
    """Noisy pools: what matching leaves of a random subset's error, and which outliers it picks."""
    prompts = claims.numbers(dataset)
    figure, axes = style.stacked(6.75, (2.5, 3.2), ((3, 3, 3), (1,)), first="e")
    for ax, learner in zip(axes, (LEARNERS[0], LEARNERS[-1]), strict=False):
        gained = {rule: prompts.noisy_gain(learner, rule) for rule in NOISY_RULES[:-1]}
        for i, (rule, runs) in enumerate(gained.items()):
            middle, ends = np.exp(runs.values.mean(0)), np.exp(style.mean_ends(runs.values))
            y = np.arange(len(NOISY_KINDS)) + 0.2 * (i - 1)
            rows.points(ax, y, middle, ends, SPAN, label=rule, **style.METHOD[rule])
        style.log_axes(ax, x=True, ticks=(0.01, 0.1, 1, 10))
        ax.set(xlim=SPAN, xlabel="error relative to random", title=learner)
    for i, rule in enumerate(NOISY_RULES[:-1]):
        runs = prompts.outlier_ratio(rule).sel(kind=list(OUTLIERS)).values
        y = 1 + np.arange(len(OUTLIERS)) + 0.2 * (i - 1)
        rows.means(axes[2], y, runs, PICKED, label=rule, **style.METHOD[rule])
    axes[2].set(xlim=PICKED, xlabel="their share / the pool's", title="outliers chosen")
    for ax in axes[:3]:
        for place in range(0, len(NOISY_KINDS), 2):
            ax.axhspan(place - 0.5, place + 0.5, color="grey", alpha=0.08, lw=0)
        ax.axvline(1, color="grey", lw=0.8)
        ax.set(ylim=(len(NOISY_KINDS) - 0.5, -0.5), yticks=range(len(NOISY_KINDS)), yticklabels=[])
    axes[0].set_yticks(range(len(NOISY_KINDS)), NOISY_KINDS)
    handles, names = axes[2].get_legend_handles_labels()
    figure.legend(handles, names, ncols=len(names), loc="outside upper center")
    plot_judged(axes[3], dataset, NOISY, (0.2, 4.0), (0.2, 0.5, 1, 2), "ratio")
    return figure


def learner_lines(ax, relative):  # [run, learner, fixed]
    fixed = relative.fixed.values
    for i, (learner, (method, marker)) in enumerate(zip(MIXED, LOOKS, strict=True)):
        runs, look = relative.sel(learner=learner).values, style.METHOD[method] | {"marker": marker}
        style.band(ax, fixed + 0.4 * (i - 1), runs, learner, **look)
    ax.axhline(1, color="grey", lw=0.8)
    ax.set(yscale="log", ylim=(0.1, 1.3), xticks=fixed)
    ax.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
    ax.minorticks_off()


def plot_judged(ax, dataset, families, span, ticks, label):
    statements, samples = evidence(claims, dataset)
    ids = [cell.id for cell in cells_of(statements) if cell.family in families]
    style.log_axes(ax, x=True, ticks=ticks)
    judged_panel.rows(ax, statements, samples, span, ids)
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel=label, title="what is judged")


def caption(dataset) -> str:
    prompts = claims.numbers(dataset)
    config = prompts.config
    shares = best_share(prompts.logs.sel(rule="matching"), config.n).median("run")
    common, own = (shares.sel(kind=kind) for kind in ("one task", "own tasks"))
    gained = np.exp(prompts.noisy_gain(LEARNERS[0]).mean("run"))
    picked = prompts.outlier_ratio().mean("run")
    missing = sum(map(style.missing, (dataset.error, prompts.noisy.outliers)))
    return (
        f"The best prompt takes {_span(common)} of its demonstrations for its own query if all "
        f"queries have one task, and {_span(own)} if each cluster has its own. "
        f"The rest of {config.n} are matched once for all queries. Part of a pool misleads in e to "
        f"h: matching leaves descent {_span(gained)} of the error of random subsets, and picks "
        f"{_span(picked)} times the outliers' share. a to c show medians and middle 80 % of "
        f"{config.runs} runs, e to g means and {level()} intervals. "
        f"{missing} numbers were not finite."
    )


def _span(values) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"
