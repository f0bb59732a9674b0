"""What Algorithm 1, a wider search and one number times the answer gain, task by task."""

import numpy as np

from experiments.clipping.clipped_models import PARTS, diverged
from experiments.clipping.clipping_search import claims
from experiments.clipping.clipping_search.config import ALGORITHM, TASKS, TRAINED, WIDE
from lsa_lab.harness.draw import style
from lsa_lab.judging.statistics import level


def plot(dataset):
    gains = claims.numbers(dataset)
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    series = {
        f"Algorithm 1, {part}": gains.test.sel(search=f"Algorithm 1, {part}") for part in PARTS
    }
    series["one number times the answer"] = dataset.scaled_gain
    plot_tasks(axes[0], series)
    wins = int((gains.algorithm.mean("run") >= claims.WORTHWHILE).sum())
    total = len(TASKS) * len(ALGORITHM)
    axes[0].set_title(f"Algorithm 1 gains 1 % in {wins} of {total} cells")
    validation = dataset.validation_gain.sel(search=WIDE)
    plot_tasks(
        axes[1], {"on its own prompts": validation, "on others": gains.test.sel(search=WIDE)}
    )
    axes[1].set_title("A wide search gains on its own prompts")
    axes[1].set_yticklabels([])
    return figure


def plot_tasks(ax, series):
    """A row a task: means over runs and their intervals."""
    for i, (name, values) in enumerate(series.items()):
        runs = values.transpose("run", "task").values
        y = np.arange(len(TASKS)) + 0.2 * (i - (len(series) - 1) / 2)
        look = dict(color=style.COLOURS[i], marker=style.MARKERS[i], ms=4, label=name)
        style.mean_rows(ax, y, runs, **look)
    rows = -0.6, len(TASKS) - 0.4
    ax.vlines(0, *rows, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.vlines(claims.WORTHWHILE, *rows, color="grey", lw=0.8, ls=":", zorder=0)
    ax.set_xscale("symlog", linthresh=0.02)
    ax.set_xticks((-0.1, -0.01, 0, 0.01, 0.1, 1), ["\u2212.1", "\u2212.01", "0", ".01", ".1", "1"])
    ax.set_yticks(range(len(TASKS)), TASKS)
    ax.set(ylim=(len(TASKS) + 2.6, -0.6), xlabel="gain / unclipped risk")
    ax.legend(loc="lower right", fontsize=7)


def caption(dataset) -> str:
    gains = claims.numbers(dataset)
    cells = gains.algorithm.mean("run")
    wins = int((cells >= claims.WORTHWHILE).sum())
    rival = dataset.scaled_gain.mean("run")
    task = str(rival.idxmax("task").item())
    worse = (dataset.risk / dataset.zero).mean("run")
    unclipped = dataset.risk.sel(task=TRAINED)
    far = float(np.exp(np.log(unclipped / dataset.ridge).mean()))
    return (
        f"A2's Algorithm 1 gains 1 % of the risk or more in {wins} of {cells.size} tasks and "
        f"parts; the median change is {float(cells.median()):+.2%}. On {task}, where models have "
        f"{float(worse.sel(task=task)):.3g} times the risk of predicting 0, it gains "
        f"{float(gains.better.mean('run').sel(task=task)):.0%}, and one number times the answer "
        f"{float(rival.max()):.0%}. Answers are cut at twice the largest label. Dotted lines are "
        f"gains of {claims.WORTHWHILE:.0%}; bars are {level()} intervals. On their own task models "
        f"have {far:.3g} times ridge's risk, and {diverged(dataset)} of {dataset.sizes['run']} "
        "diverged. "
    )
