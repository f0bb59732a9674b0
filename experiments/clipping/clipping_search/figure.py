"""Gains of each search on the prompts it searched with, and on others."""

import numpy as np

from experiments.clipping.clipping_search.config import ALGORITHM, COMPOSED, SEARCHES, WIDE
from experiments.clipping.diverged_runs import left_out
from lsa_lab import results
from lsa_lab.harness import style

TICKS = (  # of the searches, in two lines
    "Algorithm 1,\nattention",
    "Algorithm 1,\nMLP",
    "all layers\nand modules",
    "composition\n",
)


def plot(dataset):
    figure, axes = style.figure(9.5, 6.0, (2, 2))
    gains = dataset[["validation_gain", "test_gain"]]
    algorithm = gains.sel(search=list(ALGORITHM)).mean("search")
    plot_gains(axes[0], algorithm, "task", dataset.task.values)
    plot_gains(axes[1], gains.sel(search=WIDE), "task", dataset.task.values)
    axes[0].set_title("Algorithm 1, attention and MLP")
    axes[1].set_title(f"best edit of {WIDE}")
    plot_searches(axes[2], dataset)
    costs = dataset.passes.mean(("task", "run")).values
    labels = [f"{name}\n{cost:,.0f}" for name, cost in zip(TICKS, costs, strict=True)]
    plot_gains(axes[3], gains.mean("task"), "search", labels)
    axes[3].set_title("mean over tasks; below: prompts pushed through a model")
    for ax in axes:
        ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
        ax.legend()
    for i in (0, 1, 3):
        axes[i].set(ylabel="gain / unclipped risk")
    return figure


def plot_gains(ax, dataset, along, labels):
    """Gains on validation and on test: means over runs and their 95 % intervals."""
    x = np.arange(len(labels))
    for name, marker, color, shift in (
        ("validation", "s", "grey", -0.1),
        ("test", "o", style.COLOURS[0], 0.1),
    ):
        runs = dataset[f"{name}_gain"].transpose("run", along)
        look = dict(fmt=marker, color=color, capsize=2, elinewidth=0.8)
        style.mean_points(ax, x + shift, runs, f"on {name}", **look)
    slanted = dict(rotation=30, ha="right", rotation_mode="anchor")
    ax.set_xticks(x, labels, **(slanted if along == "task" else {}))


def plot_searches(ax, dataset):
    """One point for every search of a model on a task."""
    for name, color, marker in zip(SEARCHES, style.COLOURS, style.MARKERS, strict=False):
        points = dataset.sel(search=name)
        ax.plot(
            points.validation_gain.values.ravel(), points.test_gain.values.ravel(), marker,
            color=color, label=name, alpha=0.6, ls="none", mew=0,
        )  # fmt: skip
    span = [0, float(dataset.validation_gain.max()) * 1.1]
    ax.plot(span, span, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="gain on validation", ylabel="gain on test")
    ax.set_title("each search: model × task")


def tally(dataset, label, names):
    """How many searches clip, win and lose, and what they gain, as words."""
    chosen = dataset.sel(search=names)
    test = chosen.test_gain
    signs = (chosen.edits > 0, test > 0, test < 0, chosen.low > 0, chosen.high < 0)
    edited, wins, losses, sure_wins, sure_losses = (int(sign.sum()) for sign in signs)
    return (
        f"{label}: {edited} of {chosen.edits.size} searches clip, {wins} win and {losses} lose "
        f"({sure_wins} and {sure_losses} by a 95 % interval over test prompts), gain "
        f"{float(chosen.validation_gain.mean()):+.2%} on validation and {float(test.mean()):+.2%} "
        f"on test"
    )


def caption(dataset) -> str:
    config = results.config_of(dataset)
    groups = (("Algorithm 1", list(ALGORITHM)), (WIDE, [WIDE]), (COMPOSED, [COMPOSED]))
    algorithm, wide = (
        [float(dataset[f"{kind}_gain"].sel(search=names).mean()) for kind in ("validation", "test")]
        for _, names in groups[:2]
    )
    return (
        f"A2's Algorithm 1 gains {algorithm[0]:+.1%} of the risk on the prompts it searches with "
        f"and {algorithm[1]:+.1%} on unseen ones, a search of {WIDE} {wide[0]:+.1%} and "
        f"{wide[1]:+.1%}. "
        f"{'; '.join(tally(dataset, *group) for group in groups)}. A2's own logs: +.005 and +.002 "
        f"of accuracy on test, about as many losses as wins. {dataset.sizes['run']} runs "
        f"({left_out(dataset)} diverged and left out), {config.validation} validation and "
        f"{config.test} test prompts for each model and task; bars: 95 % intervals over runs. "
        f"Gains are relative to the unclipped risk. d = {config.d}, n = {config.n}."
    )
