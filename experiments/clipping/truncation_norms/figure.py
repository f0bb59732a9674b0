"""The figure of `truncation_norms`, drawn from its result alone."""

import numpy as np

from experiments.clipping.truncation_norms.claims import rows_of
from experiments.clipping.update_norms import MODULES
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 4.6, (1, 3))
    ax, table = axes[0], rows_of(dataset)
    for i, (provable, *both) in enumerate(table.values()):
        color = style.COLOURS[0 if provable else 1]
        for shares, aside, looks in zip(both, (-0.15, 0.15), ("o", "s"), strict=True):
            if shares is not None:
                ax.plot(np.quantile(shares, style.QUANTILES), [i + aside] * 2, color=color, lw=0.8)
                face = color if looks == "o" else "white"
                ax.plot(np.median(shares), i + aside, looks, color=color, mfc=face)
    ax.set(yticks=range(len(table)), yticklabels=list(table), ylim=(len(table) - 0.4, -0.6))
    ax.tick_params(axis="y", labelsize=6.5)
    ax.axvline(settings.rarely, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="share in which it rises", xlim=(-0.04, 1.04))
    ax.set_title("norm, matrix truncated")

    ax, series = axes[1], {}
    share = dataset.random_rises.sel(norm="sum").mean("rank")
    ours = dataset.trained_rises.sel(norm="sum").mean("rank")
    for name in MODULES:
        series[name] = dataset.layer, share.sel(module=name).transpose("seed", "layer")
    for name in ours.trained_module.values:
        values = ours.sel(trained_module=name).transpose("run", "layer")
        series[f"{name}, trained"] = dataset.layer, values
    for i, (text, (layers, values)) in enumerate(series.items()):
        looks = (text, style.COLOURS[i], style.MARKERS[i])
        style.band(ax, layers.values + 0.1 * (i - 2.5), values, *looks)
    ax.set(xlabel="layer truncated", xticks=dataset.layer.values, ylim=(-0.04, 1.4))
    ax.set(yticks=np.linspace(0, 1, 6))
    ax.set(ylabel="share in which it rises")
    ax.set_title("Σ|G|², the sum in Theorem 2")
    ax.legend(loc="upper right", ncols=2)

    ax, ranks = axes[2], dataset["rank"].values
    for i, (name, layer) in enumerate((("W_V", 1), ("W_K", 1), ("W_Q", 1), ("W_Q", 2))):
        there = dataset.sel(norm="own", module=name, layer=layer)
        typical, largest = there.random_typical.median("seed"), there.random_largest.max("seed")
        style.line(ax, ranks, np.exp(typical), f"{name}, layer {layer}", style.COLOURS[i])
        style.line(ax, ranks, np.exp(largest), None, style.COLOURS[i], ":")
    before, after = dataset.example.values
    ax.plot([1], [after / before], "*", color=style.BLACK, ms=8, label="written down")
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, y=True)
    ax.set(xlabel="rank kept", xticks=ranks, ylabel="|G| after / before")
    ax.set_title("|G_t| of that layer")
    ax.legend()
    left_out = sum("diverged" in str(one) for one in dataset.status.values)
    style.caption(
        drawn,
        f"Blue: provable, and it never rises. Orange: not provable, and it does. Dots: "
        f"{settings.seeds} seeds of {settings.draws} random stacks; squares: "
        f"{dataset.sizes['run']} trained stacks of merged weights on {settings.draws} prompts "
        f"each, {left_out} diverged and left out; median and the middle 80 %. a: mean over ranks "
        f"and layers, without the last layer where later |G| count. c: the median (lines) and the "
        f"worst (dotted) of all random stacks; the star is {before:.2g} becoming {after:.2g}. "
        f"Dashes: what counts as rare, and no change.",
    )
    return drawn
