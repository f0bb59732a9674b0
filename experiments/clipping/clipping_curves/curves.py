"""Curves of the risk of clipped models: by layer, by the rate and by the number of shots."""

import numpy as np

from experiments.clipping.clipping_curves.claims import numbers
from experiments.clipping.clipping_curves.config import DROPPED
from experiments.clipping.layer_ends import shades, shallow_and_deep
from lsa_lab.harness.draw import style


def layer_curves(ax, dataset, part):  # -> {name: y at the end}
    """One curve a layer, with as many shots as in training."""
    clipped = numbers(dataset)
    change = clipped.change.sel(shots=clipped.n, part=part)
    places, layers, ends = np.arange(dataset.sizes["rate"]), dataset.layer.values, {}
    colors = shades(len(layers))
    for layer, color, marker in zip(layers, colors, style.MARKERS * 3, strict=False):
        runs = change.sel(layer=layer).transpose("run", "rate")
        style.mean_band(ax, places, runs, None, color, marker)
        ends[f"layer {layer}"] = float(runs.mean("run")[-1])
    rate_axis(ax, dataset.rate.values, top=1.5 * max(ends.values()))
    ax.set_title(f"{part}, {clipped.n} shots")
    return ends


def shots_curves(ax, dataset, part):  # -> {name: y at the end}
    """The risk after drastic clipping over that before, by the number of shots."""
    from matplotlib.ticker import LogLocator

    clipped = numbers(dataset)
    logs, config = clipped.ends(clipped.logs, part=part), clipped.config
    words = f"first {config.ends} layers", f"last {config.ends} layers"
    colors, ends = shades(len(words)), {}
    for runs, name, color, marker in zip(logs, words, colors, "os", strict=True):
        middle, (low, high) = runs.mean("run"), style.mean_ends(runs.transpose("run", "shots"))
        ax.plot(dataset.shots, 10**middle, "-", marker=marker, color=color)
        ax.fill_between(dataset.shots, 10**low, 10**high, color=color, alpha=0.2, lw=0)
        ends[name] = float(10 ** middle[-1])
    style.log_axes(ax, x=True, y=True, ticks=dataset.shots.values)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.axhline(1, color=style.BLACK, lw=0.8, ls="--")
    ax.set(xlabel="shots", ylabel="risk clipped / unclipped")
    ax.set_title(f"{part}, rates ≥ {config.high:g}")
    return ends


def end_curves(ax, dataset, part):
    """The first layers and the last ones, one curve for each number of shots."""
    config, change = numbers(dataset).config, numbers(dataset).change.sel(part=part)
    places = np.arange(dataset.sizes["rate"])
    for shots, color in zip(dataset.shots.values, style.COLOURS, strict=False):
        shallow, deep = shallow_and_deep(change.sel(shots=shots), config.ends)
        runs = shallow.transpose("run", "rate"), deep.transpose("run", "rate")
        style.mean_band(ax, places, runs[0], f"{shots} shots", color, "o", "-")
        style.mean_band(ax, places, runs[1], None, color, "s", ":")
    ax.set_title(part)
    ax.plot([], [], "k-", label=f"first {config.ends} layers")
    ax.plot([], [], "k:", label=f"last {config.ends} layers")
    rate_axis(ax, dataset.rate.values, top=5000)  # room for the legend


def percent(change) -> str:
    return f"{100 * change:+g}%".replace("-", "\u2212") if change else "0"


def rate_axis(ax, rates, top):
    """Places of equal distance, as in A2's figures, and a change that may be small or huge."""
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    ax.set_yscale("symlog", linthresh=0.01, linscale=0.5)
    ticks = (-0.01, 0, 0.01, 0.1, 1, 10, 100)
    ax.set_yticks(ticks, [percent(tick) for tick in ticks])
    ax.set_ylim(-0.04, top)
    labels = ["drop" if rate == DROPPED else f"{rate:g}" for rate in rates]
    ax.set_xticks(np.arange(len(rates)), labels)
    ax.set(xlabel="clipping rate", ylabel="change of the risk")
