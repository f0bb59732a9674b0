"""How often each norm rises, and by how much, when one matrix of a stack is truncated."""

import numpy as np

from experiments.clipping.diverged_runs import left_out
from experiments.clipping.truncation_norms.claims import rises_by_norm, samples
from experiments.clipping.truncation_norms.config import MODULES
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(9.0, 4.0, (1, 3))
    plot_table(axes[0], dataset, config)
    plot_sum(axes[1], dataset)
    plot_sizes(axes[2], dataset)
    return figure


def plot_table(ax, dataset, config):
    """One row a norm: the share in which it rises, random stacks above trained ones."""
    table = rises_by_norm(dataset)
    for i, row in enumerate(table.values()):
        color = style.COLOURS[0 if row.provable else 1]
        looks = ((row.random, -0.15, "o", color), (row.trained, 0.15, "s", "white"))
        for shares, aside, marker, face in looks:
            if shares is not None:
                ax.plot(np.quantile(shares, style.QUANTILES), [i + aside] * 2, color=color, lw=0.8)
                ax.plot(np.median(shares), i + aside, marker, color=color, mfc=face)
    ax.set(yticks=range(len(table)), yticklabels=list(table), ylim=(len(table) - 0.4, -0.6))
    ax.tick_params(axis="y", labelsize=6.5)
    ax.axvline(config.rarely, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="share in which it rises", xlim=(-0.04, 1.04))
    ax.set_title("norm, matrix truncated")


def plot_sum(ax, dataset):
    """The share in which Σ|G|² rises, by the layer that is truncated."""
    shares = dataset.random_rises.sel(norm="sum").mean("rank")
    trained = dataset.trained_rises.sel(norm="sum").mean("rank")
    series = {name: shares.sel(module=name).transpose("seed", "layer") for name in MODULES}
    for name in trained.trained_module.values:
        runs = trained.sel(trained_module=name).transpose("run", "layer")
        series[f"{name}, trained"] = runs
    layers = dataset.layer.values
    for i, (label, values) in enumerate(series.items()):
        x = layers + 0.1 * (i - (len(series) - 1) / 2)
        style.band(ax, x, values, label, style.COLOURS[i], style.MARKERS[i])
    ax.set(xlabel="layer truncated", xticks=layers, ylim=(-0.04, 1.4))
    ax.set(yticks=np.linspace(0, 1, 6), ylabel="share in which it rises")
    ax.set_title("Σ|G|², the sum in Theorem 2")
    ax.legend(loc="upper right", ncols=2)


def plot_sizes(ax, dataset):
    """The typical and the largest |G_t| after over before, by the rank that is kept."""
    ranks = dataset["rank"].values
    for i, (name, layer) in enumerate((("W_V", 1), ("W_K", 1), ("W_Q", 1), ("W_Q", 2))):
        own = dataset.sel(norm="own", module=name, layer=layer)
        typical, largest = own.random_typical.median("seed"), own.random_largest.max("seed")
        style.line(ax, ranks, np.exp(typical), f"{name}, layer {layer}", style.COLOURS[i])
        style.line(ax, ranks, np.exp(largest), None, style.COLOURS[i], ":")
    before, after = dataset.example.values
    ax.plot([1], [after / before], "*", color=style.BLACK, ms=8, label="written down")
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, y=True)
    ax.set(xlabel="rank kept", xticks=ranks, ylabel="|G| after / before")
    ax.set_title("|G_t| of that layer")
    ax.legend()


def caption(dataset) -> str:
    config = results.config_of(dataset)
    shares = {id: float(np.mean(values)) for id, values in samples(dataset).items()}
    before, after = dataset.example.values
    return (
        f"Truncation raises A2's upper bounds in {shares['bounds']:.0%} of all cases, and the sum "
        f"Σ|G|² of its Theorem 2 in {shares['sum']:.0%} of random and "
        f"{shares['sum_when_trained']:.0%} of trained ones. "
        f"Blue: provable that it never rises. Orange: not provable. Dots: {config.seeds} seeds of "
        f"{config.draws} random stacks; squares: {dataset.sizes['run']} trained stacks of merged "
        f"weights on {config.draws} prompts each, {left_out(dataset)} diverged and left out; "
        f"median and the middle 80 %. a: mean over ranks and layers, without the last layer where "
        f"later |G| count. c: the median (lines) and the worst (dotted) of all random stacks; the "
        f"star is {before:.2g} becoming {after:.2g}. Dashes: what counts as rare, and no change."
    )
