"""Accuracy by the rate at which a part of a layer is clipped, and what is judged."""

import numpy as np

from experiments.clipping.label_clipping import claims
from experiments.clipping.label_clipping.config import DROPPED
from experiments.clipping.layer_ends import shades
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.1, 2.2), ((1, 1), (1, 1), (1, 1)))
    for ax, part in zip(axes, dataset.part.values, strict=False):
        layer_curves(ax, dataset, part)
    for ax, part in zip(axes[2:], dataset.part.values, strict=False):
        shots_curves(ax, dataset, part)
    low, high = zip(*(ax.get_ylim() for ax in axes[2:4]), strict=True)
    for ax in axes[2:4]:
        ax.set_ylim(min(low), max(high))
    plot_judged(axes[4:], dataset)
    return figure


def plot_judged(axes, dataset):
    """What is judged of each part, and the rest."""
    statements, samples = evidence(claims, dataset)
    parted, others = [], []
    for cell in cells_of(statements):
        (parted if "part" in cell.case else others).append(cell)
    for ax, cells in zip(axes, (parted, others), strict=True):
        judged_panel.rows(ax, cells, samples, (-0.1, 0.1))
        ax.axvline(0, color="grey", lw=0.8)
        ax.set_xticks((-0.1, 0, 0.1))
        ax.set(xlabel="accuracy, or a share", title="what is judged")


def layer_curves(ax, dataset, part):
    """One curve a layer, with the most shots."""
    rows = dataset.accuracy.isel(shots=-1).sel(part=part)
    base = float(dataset.unclipped_accuracy.isel(shots=-1).mean())
    places, layers, ends = np.arange(dataset.sizes["rate"]), dataset.layer.values, {}
    colors = shades(len(layers))
    for layer, color, marker in zip(layers, colors, style.MARKERS * 3, strict=False):
        runs = rows.sel(layer=layer).transpose("run", "rate")
        style.mean_band(ax, places, runs, None, color, marker)
        ends[f"layer {layer}"] = float(runs.mean("run")[-1])
    ax.axhline(base, color=style.BLACK, lw=0.8, ls="--")
    ax.axhline(0.5, color="grey", lw=0.8)
    labels = [
        "drop" if rate == DROPPED else f"{rate:g}".lstrip("0") for rate in dataset.rate.values
    ]
    ax.set_xticks(places, labels)
    ax.set(xlabel="clipping rate", ylabel="accuracy", ylim=(0.45, 1))
    ax.set_title(f"{part}, {int(dataset.shots[-1])} shots")
    end_labels(ax, ends, colors)


def shots_curves(ax, dataset, part):
    """The change of accuracy, averaged over drastic rates, in the first layers and in the last."""
    clipped = claims.numbers(dataset)
    config, pair = clipped.config, [end.sel(part=part) for end in clipped.ends]
    x, names = dataset.shots.values, ("first", "last")
    for runs, name, color, marker in zip(pair, names, shades(2), "os", strict=True):
        style.mean_band(ax, x, runs.transpose("run", "shots"), None, color, marker)
        ax.plot([], [], marker=marker, color=color, label=f"{name} {config.ends} layers")
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    ax.legend(loc="lower right")
    ax.set(xlabel="shots", ylabel="change of accuracy")
    ax.set_xticks(x)
    ax.set_title(f"{part}, rates ≥ {config.high:g}")


def caption(dataset) -> str:
    clipped = claims.numbers(dataset)
    config, n = clipped.config, clipped.shots["trained"]
    base, bayes, average = (
        float(values.mean())
        for values in (clipped.n.unclipped_accuracy, clipped.n.bayes, clipped.n.average)
    )
    auc = float((clipped.n.auc - clipped.n.unclipped_auc).mean("run").max())
    least = float(clipped.sharp[0].sel(shots=n).mean("run").min())
    return (
        f"One layer clipped sharply leaves our classifiers an accuracy of {least:.2f} or more "
        f"at {n} shots, where they have {base:.2f} unclipped. The best edit of the other runs "
        f"changes accuracy by {float(clipped.best('trained').mean()):+.4f}. No edit raises the "
        f"mean AUC by more than {auc:.4f}. The Bayes rule, by Gibbs sampling, has an accuracy of "
        f"{bayes:.3f}. The sign of one average, Σ y x·x_query, has {average:.3f}. Drastic "
        f"rates are {config.high:g} or more. Bands are {level()} intervals of "
        f"{dataset.sizes['run']} runs. "
    )
