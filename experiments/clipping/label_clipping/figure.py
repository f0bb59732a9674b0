"""Accuracy by the rate at which a part of a layer is clipped."""

import numpy as np

from experiments.clipping.clipped_models import shades
from experiments.clipping.label_clipping import claims
from experiments.clipping.label_clipping.config import DROPPED
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.statistics import level


def plot(dataset):
    figure, axes = style.figure(6.75, 2.6, (1, 2))
    titles = "No layer's attention collapses", "No layer's MLP collapses"
    for ax, part, title in zip(axes, dataset.part.values, titles, strict=True):
        layer_curves(ax, dataset, part)
        ax.set_title(title)
    return figure


def layer_curves(ax, dataset, part):
    """One curve a layer, beside each other, with the most shots; a guess is far below the axis."""
    rows = dataset.accuracy.isel(shots=-1).sel(part=part)
    base = float(dataset.unclipped_accuracy.isel(shots=-1).mean())
    places, layers, ends = np.arange(dataset.sizes["rate"]), dataset.layer.values, {}
    colors = shades(len(layers))
    for layer, color, marker in zip(layers, colors, style.MARKERS * 3, strict=False):
        runs = rows.sel(layer=layer).transpose("run", "rate")
        beside = 0.12 * (layer - layers.mean())
        style.mean_points(ax, places + beside, runs, fmt=marker, ls="-", lw=0.8, color=color)
        ends[f"layer {layer}"] = float(runs.mean("run")[-1])
    ax.axhline(base, color=style.BLACK, lw=0.8, ls="--")
    direct_label(ax, 0, base, "unclipped", style.BLACK, (-4, 12))
    labels = [
        "drop" if rate == DROPPED else f"{rate:g}".lstrip("0") for rate in dataset.rate.values
    ]
    ax.set_xticks(places, labels)
    ax.set(xlabel="clipping rate", ylabel=f"accuracy, {int(dataset.shots[-1])} shots")
    ax.set_ylim(0.86, 0.92)
    end_labels(ax, ends, colors)


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
        "One layer clipped sharply leaves our classifiers an accuracy of "
        f"{np.floor(1000 * least) / 1000:.3f} or more at {n} shots, where they have {base:.3f} "
        "unclipped. The best edit of the other runs changes accuracy by "
        f"{float(clipped.best('trained').mean()):+.4f}. No edit raises the mean AUC by more than "
        f"{auc:.4f}. The Bayes rule, by Gibbs sampling, has an accuracy of {bayes:.3f}. The sign "
        f"of one average, Σ y x·x_query, has {average:.3f}. Drastic rates are {config.high:g} or "
        f"more. Bands are {level()} intervals of {dataset.sizes['run']} runs. "
    )
