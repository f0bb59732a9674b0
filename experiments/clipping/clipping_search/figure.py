"""What Algorithm 1, a wider search and one number times the answer gain, task by task."""

from experiments.clipping.clipped_models import PARTS, WORTHWHILE
from experiments.clipping.clipping_search import claims
from experiments.clipping.clipping_search.config import ALGORITHM, TASKS, TRAINED, WIDE
from experiments.clipping.drawing import plot_rows, quality
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
    wins = int((gains.algorithm.mean("run") >= WORTHWHILE).sum())
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
    plot_rows(ax, TASKS, {name: each.transpose("run", "task") for name, each in series.items()})
    rows = -0.6, len(TASKS) - 0.4
    ax.vlines(0, *rows, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.vlines(WORTHWHILE, *rows, color="grey", lw=0.8, ls=":", zorder=0)
    ax.set_xscale("symlog", linthresh=0.02)
    ax.set_xticks((-0.1, -0.01, 0, 0.01, 0.1, 1), ["\u2212.1", "\u2212.01", "0", ".01", ".1", "1"])
    ax.set(ylim=(len(TASKS) + 2.6, -0.6), xlabel="gain / unclipped risk")
    ax.legend(loc="lower right", fontsize=7)


def caption(dataset) -> str:
    gains = claims.numbers(dataset)
    cells = gains.algorithm.mean("run")
    wins = int((cells >= WORTHWHILE).sum())
    rival = dataset.scaled_gain.mean("run")
    task = str(rival.idxmax("task").item())
    worse = (dataset.risk / dataset.zero).mean("run")
    return (
        f"A2's Algorithm 1 gains 1 % of the risk or more in {wins} of {cells.size} tasks and "
        f"parts; its median gain is {float(cells.median()):+.2%}. On {task} models have "
        f"{float(worse.sel(task=task)):.3g} times the risk of predicting 0. There Algorithm 1 "
        f"gains {float(gains.better.mean('run').sel(task=task)):.0%}, and one number times the "
        f"answer gains {float(rival.max()):.0%}. Answers are cut at twice the largest label. "
        f"Dotted lines are gains of {WORTHWHILE:.0%}, and bars are {level()} intervals. "
        + quality(dataset, dataset.risk.sel(task=TRAINED), dataset.ridge, " on their own task")
    )
