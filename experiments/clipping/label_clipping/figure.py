"""Accuracy by the rate at which a part of a layer is clipped."""

import numpy as np

from experiments.clipping.drawing import rate_labels, shades
from experiments.clipping.label_clipping import claims
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.statistics import level


def plot(dataset):
    figure, axes = style.figure(6.75, 2.6, (1, 2))
    titles = "No attention collapses", "No MLP collapses"
    for ax, part, title in zip(axes, dataset.part.values, titles, strict=True):
        layer_curves(ax, dataset, part)
        ax.set_title(title)
    lows, highs = zip(*(ax.get_ylim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_ylim(min(lows), max(highs))
        direct_label(ax, 0, min(lows), "a guess has 0.5", "dimgrey", (1, 4))
    return figure


def layer_curves(ax, dataset, part):
    """One curve a layer, beside each other, with the most shots."""
    rows = dataset.accuracy.isel(shots=-1).sel(part=part)
    base = float(dataset.unclipped_accuracy.isel(shots=-1).mean())
    places, layers, ends = np.arange(dataset.sizes["rate"]), dataset.layer.values, {}
    colors = shades(len(layers))
    for i, (layer, color) in enumerate(zip(layers, colors, strict=True)):
        runs = rows.sel(layer=layer).transpose("run", "rate")
        beside = 0.48 * (i / max(1, len(layers) - 1) - 0.5)
        look = {"marker": style.MARKERS[i % len(style.MARKERS)], "lw": 0.8, "color": color}
        style.mean_points(ax, places + beside, runs, **look)
        ends[f"layer {layer}"] = float(runs.mean("run")[-1])
    ax.axhline(base, color=style.BLACK, lw=0.8, ls="--")
    ax.set_xticks(places, rate_labels(dataset.rate.values), fontsize=7)
    ax.locator_params(axis="y", nbins=3)
    ax.set(xlabel="clipping rate", ylabel=f"accuracy, {int(dataset.shots[-1])} shots")
    end_labels(ax, ends | {"unclipped": base}, [*colors, style.BLACK])


def caption(dataset) -> str:
    clipped = claims.numbers(dataset)
    n, of_n = clipped.shots["trained"], clipped.n
    base, bayes, average = (
        float(values.mean()) for values in (of_n.unclipped_accuracy, of_n.bayes, of_n.average)
    )
    auc = float((of_n.auc - of_n.unclipped_auc).mean("run").max())
    least = float(clipped.sharp[0].sel(shots=n).mean("run").min())
    return (
        f"Our classifiers have an accuracy of {base:.3f} at {n} shots, and keep "
        f"{np.floor(1000 * least) / 1000:.3f} or more when one layer is clipped sharply. The edit "
        "that is best for the other runs changes accuracy by "
        f"{float(clipped.best('trained').mean()):+.4f}. No edit raises the mean AUC by more than "
        f"{auc:.4f}. The Bayes rule, by Gibbs sampling, has an accuracy of {bayes:.3f}, and the "
        f"sign of one average, Σ y x·x_query, has {average:.3f}. Bars are {level()} intervals of "
        f"{dataset.sizes['run']} runs. "
    )
