"""The risk by the rate at which a part of a layer is clipped."""

import numpy as np

from experiments.clipping.clipped_models import PARTS
from experiments.clipping.clipping_curves import claims
from experiments.clipping.drawing import quality, rate_labels, shades
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels


def plot(dataset):
    clipped = claims.numbers(dataset)
    figure, axes = style.figure(6.75, 2.8, (1, 2))
    factors = clipped.factors.sel(shots=clipped.n).mean("run")
    attention = factors.sel(part="attention")
    axes[0].set_title(f"Attention of layer {int(attention.idxmax())} collapses")
    axes[1].set_title("MLPs tolerate rates short of all")
    for ax, part in zip(axes, PARTS, strict=True):
        rate_curves(ax, clipped, part)
    return figure


def rate_curves(ax, clipped, part):
    """One curve a layer, with as many shots as in training, in units of predicting 0."""
    risks = clipped.clipped.sel(shots=clipped.n, part=part)
    places, ends = np.arange(risks.sizes["rate"]), {}
    colors = shades(risks.sizes["layer"])
    for layer, color, marker in zip(risks.layer.values, colors, style.MARKERS * 3, strict=False):
        runs = risks.sel(layer=layer).transpose("run", "rate")
        style.band(ax, places, runs, None, color, marker)
        ends[f"layer {layer}"] = float(runs.median("run")[-1])
    style.log_axes(ax, y=True)
    ax.set_ylim(0.01, 30)
    ax.axhline(1, color=style.BLACK, lw=0.8, ls="--")
    direct_label(ax, 0, 1, "predicting 0", "dimgrey", (4, 4))
    ax.set_xticks(places, rate_labels(risks.rate.values))
    ax.set(xlabel=f"clipping rate, {part}", ylabel="risk / that of predicting 0")
    end_labels(ax, ends, colors)


def caption(dataset) -> str:
    clipped = claims.numbers(dataset)
    config, n = clipped.config, clipped.n
    factors = np.exp(np.log(clipped.factors.sel(shots=n)).mean("run"))
    attention, mlps = (factors.sel(part=part) for part in PARTS)
    return (
        f"Drastic clipping of attention in layer {int(attention.idxmax())} multiplies our models' "
        f"risk by {float(attention.max()):.3g}, clipping of any MLP by {float(mlps.max()):.3g} at "
        f"most. Attention of layer {int(attention.idxmin())} is hurt least, by a factor of "
        f"{float(attention.min()):.3g}. A model without its first MLP is worse than one that "
        "predicts 0. "
        f"Drastic rates are {config.high:g} to {max(config.rates):g}, and answers are cut at twice "
        "the largest label. "
        + quality(dataset, dataset.unclipped.sel(shots=n), dataset.ridge.sel(shots=n))
    )
