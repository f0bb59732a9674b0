"""Gains of each search on the prompts it searched with, on others, and what is judged."""

import numpy as np

from experiments.clipping.clipping_search import claims
from experiments.clipping.clipping_search.config import (
    ALGORITHM,
    COMPOSED,
    PATIENT,
    SEARCHES,
    TRAINED,
    WIDE,
)
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.transformers import spec_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

JUDGED = (  # from the top
    *("algorithm_gains", "algorithm_wins", "more_prompts_gain", "more_prompts_win"),
    *("matched", "mismatch", "wider_gains_more", "composition_gains_more"),
    *("selection", "more_prompts_are_fairer", "wider_is_more_optimistic"),
)


def plot(dataset):
    config = results.config_of(dataset)
    gains = dataset[["validation_gain", "test_gain"]]
    named = {
        "Algorithm 1": ALGORITHM,
        f"Algorithm 1,\n{config.more_validation} prompts": PATIENT,
        "all layers\nand modules": (WIDE,),
        "composition": (COMPOSED,),
    }
    groups = [gains.sel(search=list(each)).mean(("task", "search")) for each in named.values()]
    figure, axes = style.stacked(6.75, (3.9, 2.6), ((1, 1), (1, 1)))
    plot_gains(axes[0], groups, list(named), name=True)
    axes[0].set_title("mean over tasks")
    judged_panel.rows(axes[1], *evidence(claims, dataset), (-0.2, 0.3), JUDGED)
    axes[1].set(xlabel="gain / unclipped risk, or share", title="what is judged")
    for ax, searches, title in (
        (axes[2], ALGORITHM, "Algorithm 1, by task"),
        (axes[3], (WIDE,), "all layers and modules, by task"),
    ):
        by_task = gains.sel(search=list(searches)).mean("search")
        rows = [by_task.sel(task=task) for task in dataset.task.values]
        plot_gains(ax, rows, list(dataset.task.values))
        ax.set_title(title)
    return figure


def appendix(dataset):
    """Every search, the two parts of Algorithm 1 apart."""
    figure, (ax,) = style.figure(5.5, 2.6, first="e")
    gains = dataset[["validation_gain", "test_gain"]].mean("task")
    costs = dataset.passes.mean(("task", "run")).values
    names = [f"{name}\n({cost:,.0f} prompts)" for name, cost in zip(SEARCHES, costs, strict=True)]
    rows = [gains.sel(search=name) for name in SEARCHES]
    plot_gains(ax, rows, names, name=True)
    ax.locator_params(axis="x", nbins=6)
    return figure


def plot_gains(ax, rows, names, name=False):
    """A row each: gains on validation and on test, means over runs and their intervals."""
    for prompts, marker, color, shift in (
        ("validation", "s", "grey", -0.13),
        ("test", "o", style.COLOURS[0], 0.13),
    ):
        runs = np.transpose([row[f"{prompts}_gain"].values for row in rows])
        y = np.arange(len(rows)) + shift
        ax.plot(style.mean_ends(runs), [y, y], color=color, lw=0.8)
        ax.plot(runs.mean(0), y, marker, color=color)
        if name:
            x, offset = (runs.mean(0), (0, 4)) if shift < 0 else (style.mean_ends(runs)[1], (4, 0))
            direct_label(ax, x[-1], y[-1], f"on {prompts} prompts", color, offset)
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.axvline(claims.WORTHWHILE, color="grey", lw=0.8, ls=":", zorder=0)
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.3, -0.5), xlabel="gain / unclipped risk")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    task, gains = spec_of(config).task, dataset.test_gain
    few, many, wide = (
        -float(gains.sel(search=list(names)).mean()) for names in (ALGORITHM, PATIENT, [WIDE])
    )
    first = gains.sel(search=list(ALGORITHM))
    wins, losses = int((first > 0).sum()), int((first < 0).sum())
    unclipped = dataset.risk.sel(task=TRAINED, search=WIDE)
    far = float(np.exp(np.log(unclipped / dataset.ridge).mean()))
    return (
        f"A2's Algorithm 1 changes our models' risk on unseen prompts by {few:+.1%} if it searches "
        f"with {config.validation} prompts, by {many:+.1%} with {config.more_validation}. A search "
        f"of {WIDE} changes it by {wide:+.1%}. Of {first.size} searches of Algorithm 1 {wins} win "
        f"and {losses} lose; A2's table C.5 has 20 wins and 3 losses. Dotted lines mark a gain "
        f"that counts. {dataset.sizes['run']} runs ({left_out(dataset)} diverged) have {far:.2g} "
        f"times ridge's risk on the task of training; n = {max(task.lengths)}. "
    )
