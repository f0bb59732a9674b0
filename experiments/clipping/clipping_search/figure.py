"""Gains of each search on the prompts it searched with, on others, and what is judged."""

import numpy as np

from experiments.clipping.clipping_search.claims import samples
from experiments.clipping.clipping_search.statements import (
    ALGORITHM,
    COMPOSED,
    PATIENT,
    TRAINED,
    WIDE,
    statements,
)
from experiments.clipping.diverged_runs import left_out
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

TICKS = (  # of the searches, in two lines
    "A. 1,\natt.",
    "A. 1,\nMLP",
    "att.,\nmore",
    "MLP,\nmore",
    "all\nlayers",
    "compo-\nsition",
)
JUDGED = {
    "algorithm_gains": "Algorithm 1",
    "algorithm_wins": "wins less losses",
    "more_prompts_gain": "Algorithm 1,\nmore prompts",
    "more_prompts_win": "wins less losses,\nmore prompts",
    "matched": "all layers,\nas trained",
    "mismatch": "other tasks less\nas trained",
    "wider_gains_more": "all layers less\nAlgorithm 1",
    "composition_gains_more": "composition less\none edit",
    "selection": "optimism,\nAlgorithm 1",
    "more_prompts_are_fairer": "optimism,\nfew less more prompts",
    "wider_is_more_optimistic": "optimism, all layers\nless Algorithm 1",
}


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 7.4, (2, 2))
    gains = dataset[["validation_gain", "test_gain"]]
    algorithm = gains.sel(search=list(ALGORITHM)).mean("search")
    plot_gains(axes[0], algorithm, "task", dataset.task.values)
    plot_gains(axes[1], gains.sel(search=WIDE), "task", dataset.task.values)
    axes[0].set_title("Algorithm 1")
    axes[1].set_title("best edit of all layers")
    judged_panel.rows(axes[2], statements(config), samples(dataset), JUDGED, (-0.2, 0.3))
    axes[2].set(xlabel="gain / unclipped risk", title="judged, on test")
    costs = dataset.passes.mean(("task", "run")).values
    labels = [f"{name}\n{cost:,.0f}" for name, cost in zip(TICKS, costs, strict=True)]
    plot_gains(axes[3], gains.mean("task"), "search", labels)
    axes[3].set_title("mean over tasks")
    for i in (0, 1, 3):
        axes[i].axhline(0, color=style.BLACK, lw=0.8, ls="--")
        axes[i].axhline(config.gain, color="grey", lw=0.8, ls=":", label="a gain that counts")
        axes[i].set(ylabel="gain / unclipped risk")
        axes[i].legend()
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
    groups = {
        "Algorithm 1": list(ALGORITHM),
        f"Algorithm 1 with {config.more_validation} prompts": list(PATIENT),
        WIDE: [WIDE],
        COMPOSED: [COMPOSED],
    }
    few, many, wide, _ = (
        -float(dataset.test_gain.sel(search=names).mean()) for names in groups.values()
    )
    unclipped = dataset.risk.sel(task=TRAINED, search=WIDE)
    far = float(np.exp(np.log(unclipped / dataset.ridge).mean()))
    return (
        f"A2's Algorithm 1 changes our models' risk on unseen prompts by {few:+.1%} if it searches "
        f"with {config.validation} prompts, by {many:+.1%} with {config.more_validation}; a search "
        f"of {WIDE} by {wide:+.1%}. "
        f"{'; '.join(tally(dataset, *group) for group in groups.items())}. A2's table C.5: +.019 "
        f"of score on test on average, 20 wins, 3 losses, 5 ties; the logs of its public code "
        f"(RTE, COPA): +.005 and +.002, as many losses as wins. Our models' risk on the task of "
        f"training is {far:.2g} times that of ridge regression: they are far from the best "
        f"predictor. {dataset.sizes['run']} runs ({left_out(dataset)} diverged and left out), "
        f"{config.validation} validation and {config.test} test prompts of its own for each model "
        f"and task; bars: 95 % intervals over runs. c: {judged_panel.KEY}. "
        f"d, below: how many prompts pass through a model. d = {config.d}, "
        f"n = {config.n}."
    )
