"""Gaps against the number of matched checkpoints, of descent and of softmax."""

import numpy as np

from experiments.matching.matching_is_exact import claims
from experiments.matching.rows import upright
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.store import results

ROUNDING, LEAST = 1e-10, 1e-17


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 3.0, (1, 2))
    descents(axes[0], dataset.linear.sel(square="free"), config)
    axes[0].legend(loc="center left", bbox_to_anchor=(0, 0.55), handlelength=1)
    axes[0].set_title("Descent equals its pool at d + 1")
    softmax(axes[1], dataset)
    for ax in axes:
        scales(ax, dataset, config)
    axes[0].set_ylabel("gap / size of predictions")
    return figure


def scales(ax, dataset, config):
    """Sets that match some checkpoints, and where these are d + 1; one scale for all models, from
    beyond the size of the predictions to rounding."""
    style.log_axes(ax, y=True)
    ax.axvline(config.d + 1, color="grey", lw=0.8, ls="--")
    ax.axhspan(LEAST, ROUNDING, color="grey", alpha=0.15, lw=0)
    direct_label(ax, 0, ROUNDING, "rounding", "dimgrey", (0.1, -2))
    direct_label(ax, config.d + 1, 3e-6, "d + 1", "dimgrey")
    ax.set(xlabel="matched checkpoints", xticks=dataset.matched.values)
    ax.set(ylim=(LEAST, 100), yticks=[1e-15, 1e-10, 1e-5, 1])


def descents(ax, gaps, config):
    """A colour and a marker for each depth, the deepest one the darkest."""
    import matplotlib

    colors = matplotlib.colormaps["viridis"](np.linspace(0.7, 0, len(config.depths)))
    for i, depth in enumerate(config.depths):
        runs = gaps.sel(model=f"descent, {depth}").transpose("run", "matched").values
        look = dict(color=colors[i], marker=style.MARKERS[i])
        look["label"] = f"{depth} layer{'s' * (depth > 1)}"
        upright(ax, gaps.matched.values + 0.1 * (i - 1.5), runs, LEAST, **look)


def softmax(ax, dataset):
    """Hollow with random weights."""
    look, matched = style.METHOD["softmax"], dataset.matched.values
    for shift, weights, face, edge in (
        (-0.08, "random", "white", 1),
        (0.08, "trained", look["color"], 0),
    ):
        runs = dataset.softmax.sel(weights=weights).transpose("pair", "matched").values
        upright(ax, matched + shift, runs, LEAST, mfc=face, **look)
        y = np.quantile(runs[:, -1], style.QUANTILES[edge])
        direct_label(ax, matched[-1] + 0.3, y, weights, look["color"], (-0.1, 2 if edge else -2))
    ax.set_title("Softmax still differs")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    softmax = dataset.softmax.sel(matched=config.d + 1).median("pair")
    far = (dataset.error / dataset.bayes).median("pair").sel(weights="trained")
    chosen = claims.numbers(dataset)
    gap = float((chosen.chosen("plain") / chosen.random).median("run"))
    return (
        "Sets that match a pool's mean gradients at d + 1 checkpoints equal the pool for descent "
        "of any depth. Trained softmax attention still differs by "
        f"{float(softmax.sel(weights='trained')):.2g} of its predictions' size, with squared "
        f"labels matched, too. Its error there is {float(far):.2g} times the Bayes rule's. "
        f"A real subset, {config.n} of {config.m} chosen to match, leaves {gap:.2g} of a random "
        "subset's gap. "
        f"Points are medians of {config.runs} runs with their middle 80 %."
    )
