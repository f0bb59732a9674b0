"""The figure of `clipping_search`, drawn from its result alone."""

import numpy as np

from experiments.clipping.clipping_search.config import ALGORITHM, COMPOSED, SEARCHES, WIDE
from experiments.clipping.diverged_runs import left_out
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import mean_interval


def counted(dataset, names):
    """Wins, losses, both again by the interval over test prompts, and the searches that edit."""
    some = dataset.sel(search=names)
    signs = (some.test_gain > 0, some.test_gain < 0, some.low > 0, some.high < 0, some.edits > 0)
    return [int(sign.sum()) for sign in signs]


def plot_gains(ax, dataset, along, labels):
    """Gains on validation and on test: means over runs and their 95 % intervals."""
    x = np.arange(len(labels))
    looks = (("validation", "s", "grey", -0.1), ("test", "o", style.COLOURS[0], 0.1))
    for name, marker, color, shift in looks:
        runs = dataset[f"{name}_gain"].transpose("run", along).values
        low, high = np.transpose([mean_interval(column) for column in runs.T])
        bars = np.nan_to_num([runs.mean(0) - low, high - runs.mean(0)], posinf=0)  # of one run: 0
        look = dict(fmt=marker, color=color, capsize=2, elinewidth=0.8)
        ax.errorbar(x + shift, runs.mean(0), bars, label=f"on {name}", **look)
    slanted = dict(rotation=30, ha="right", rotation_mode="anchor")
    ax.set_xticks(x, labels, **(slanted if along == "task" else {}))


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.5, 6.8, (2, 2))
    first = dataset[["validation_gain", "test_gain"]].sel(search=ALGORITHM).mean("search")
    plot_gains(axes[0], first, "task", dataset.task.values)
    plot_gains(axes[1], dataset.sel(search=WIDE), "task", dataset.task.values)
    axes[0].set_title("Algorithm 1, attention and MLP")
    axes[1].set_title(f"best edit of {WIDE}")
    for name, color, marker in zip(SEARCHES, style.COLOURS, style.MARKERS, strict=False):
        some = dataset.sel(search=name)
        axes[2].plot(
            some.validation_gain.values.ravel(), some.test_gain.values.ravel(), marker,
            color=color, label=name, alpha=0.6, ls="none", mew=0,
        )  # fmt: skip
    span = [0, float(dataset.validation_gain.max()) * 1.1]
    axes[2].plot(span, span, color="grey", lw=0.8, ls="--")
    axes[2].set(xlabel="gain on validation", ylabel="gain on test")
    axes[2].set_title("each search: model × task")
    costs = dataset.passes.mean(("task", "run"))
    names = (
        "Algorithm 1,\nattention",
        "Algorithm 1,\nMLP",
        "all layers\nand modules",
        "composition\n",
    )
    labels = [f"{name}\n{float(cost):,.0f}" for name, cost in zip(names, costs, strict=True)]
    plot_gains(axes[3], dataset[list(first)].mean("task"), "search", labels)
    axes[3].set_title("mean over tasks; below: prompts pushed through a model")
    for ax in axes:
        ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
        ax.legend()
    for i in (0, 1, 3):
        axes[i].set(ylabel="gain / unclipped risk")
    style.caption(drawn, _told(dataset, settings))
    return drawn


def _told(dataset, settings):
    told = []
    for label, names in (("Algorithm 1", ALGORITHM), (WIDE, [WIDE]), (COMPOSED, [COMPOSED])):
        wins, losses, sure_wins, sure_losses, edited = counted(dataset, names)
        some = dataset.sel(search=names)
        validation, test = (float(some[f"{kind}_gain"].mean()) for kind in ("validation", "test"))
        told.append(
            f"{label}: {edited} of {some.edits.size} searches clip, {wins} win and {losses} lose "
            f"({sure_wins} and {sure_losses} by a 95 % interval over test prompts), gain "
            f"{validation:+.2%} on validation and {test:+.2%} on test"
        )
    return (
        f"{'; '.join(told)}. A2's own logs: +.005 and +.002 of accuracy on test, about as many "
        f"losses as wins. {dataset.sizes['run']} runs ({left_out(dataset)} diverged and left out), "
        f"{settings.validation} validation and "
        f"{settings.test} test prompts for each model and task; bars: 95 % intervals over runs. "
        f"Gains are relative to the unclipped risk. d = {settings.d}, n = {settings.n}."
    )
