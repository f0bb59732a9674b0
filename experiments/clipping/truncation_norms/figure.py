"""How often each norm rises, and by how much, when one matrix of a stack is truncated."""

import numpy as np

from experiments.clipping.diverged_runs import left_out
from experiments.clipping.truncation_norms import claims
from experiments.clipping.truncation_norms.config import MODULES, MOVEMENTS
from experiments.clipping.truncation_norms.rises import factored, layer_means, table_of_rises
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

# The judged rows, from the top.
SHARES = ("sum", "sum_when_trained", "own", "mlp_with_residuals", "unprovable")
LOGS = ("typical", "deep_is_steady", "deep_is_steady_when_trained")
LOGS += ("deep_varies_less", "deep_varies_less_when_trained")


def plot(dataset):
    statements, samples = evidence(claims, dataset)
    figure, axes = style.stacked(6.75, (3.3, 2.3, 2.1), ((1.15, 1), (1, 1), (1, 1)))
    plot_table(axes[0], dataset)
    judged_panel.rows(axes[1], statements, samples, (0, 1), SHARES)
    axes[1].set(xlabel="share in which it rises", title="judged shares")
    plot_sum(axes[2], dataset)
    plot_movement(axes[3], dataset)
    plot_sizes(axes[4], dataset)
    axes[5].set_xscale("symlog", linthresh=0.01)
    judged_panel.rows(axes[5], statements, samples, (-5, 0.01), LOGS)
    ticks = (-1, -0.1, -0.01, 0)
    axes[5].set_xticks(ticks, [f"{tick:g}".replace("-", "\u2212") for tick in ticks])
    axes[5].set(xlabel="log ratio", title="judged logs of Σ|G|²")
    return figure


def plot_table(ax, dataset):
    """One row a norm: the share in which it rises, random stacks above trained ones."""
    table = table_of_rises(dataset)
    for i, row in enumerate(table.values()):
        color = style.COLOURS[0 if row.provable else 1]
        kinds = ((row.random, -0.15, "o", color), (row.trained, 0.15, "s", "white"))
        for shares, aside, marker, face in kinds:
            if shares is not None:
                ax.plot(np.quantile(shares, style.QUANTILES), [i + aside] * 2, color=color, lw=0.8)
                ax.plot(np.median(shares), i + aside, marker, color=color, mfc=face)
    ax.set(yticks=range(len(table)), yticklabels=list(table), ylim=(len(table) - 0.4, -0.6))
    ax.tick_params(axis="y", labelsize=7)
    for i, words in ((0, "never rises: a theorem"), (1, "can rise")):
        first = [row.provable for row in table.values()].index(not i)
        ax.text(0.35, first, words, color=style.COLOURS[i], fontsize=7, va="center")
    ax.axvline(claims.RARELY, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="share in which it rises", xlim=(-0.04, 1.04))
    ax.set_title("norm, matrix truncated")


def plot_movement(ax, dataset):
    """How far Σ|G|² moves with the layer that is truncated: the mean |log| and its deviation."""
    layers = dataset.layer.values
    kinds = (factored(dataset), "random", style.COLOURS[0]), (dataset, "trained", style.COLOURS[1])
    ends, colors = {}, []
    for part, kind, color in kinds:
        for words, name, look in zip(("moves", "varies"), MOVEMENTS, ("o-", "s:"), strict=True):
            values = layer_means(part[f"{kind}_{name}"])
            style.mean_band(ax, layers, values, None, color, look[0], look[1])
            ends[f"{words}, {kind}"] = values.mean(0)[-1]
            colors.append(color)
    style.log_axes(ax, y=True)
    ax.set(xlabel="layer truncated", xticks=layers, ylabel="|log(after / before)|")
    ax.set_title("Σ|G|², how far it moves")
    end_labels(ax, ends, colors)


def plot_sum(ax, dataset):
    """The share in which Σ|G|² rises, by the layer that is truncated."""
    shares = dataset.random_rises.sel(norm="sum").mean("rank")
    trained = dataset.trained_rises.sel(norm="sum").mean("rank")
    series = {name: shares.sel(module=name).transpose("seed", "layer") for name in MODULES}
    for name in trained.trained_module.values:
        runs = trained.sel(trained_module=name).transpose("run", "layer")
        series[f"{name}, trained"] = runs
    layers, colors = dataset.layer.values, dict(zip(MODULES, style.COLOURS, strict=False))
    looks = dict(zip(MODULES, style.MARKERS, strict=False))
    for i, (label, values) in enumerate(series.items()):
        x, name = layers + 0.1 * (i - (len(series) - 1) / 2), label.split(",")[0]
        style.band(ax, x, values, None, colors[name], looks[name])
        if name != label:
            ax.containers[-1][0].set_markerfacecolor("white")
    ax.set(xlabel="layer truncated", xticks=layers, ylim=(-0.04, 1.04))
    ax.set(ylabel="share in which it rises", title="Σ|G|² of Theorem 2")
    ends = {label: float(values.median(values.dims[0])[-1]) for label, values in series.items()}
    end_labels(ax, ends, [colors[label.split(",")[0]] for label in series])


def plot_sizes(ax, dataset):
    """The typical and the largest |G_t| after over before, by the rank that is kept."""
    ranks = dataset["rank"].values
    for i, (name, layer) in enumerate((("W_V", 1), ("W_K", 1), ("W_Q", 1), ("W_Q", 2))):
        own = dataset.sel(norm="own", module=name, layer=layer)
        typical, largest = own.random_typical.median("seed"), own.random_largest.max("seed")
        style.line(ax, ranks, np.exp(typical), f"{name}, layer {layer}", style.COLOURS[i])
        style.line(ax, ranks, np.exp(largest), None, style.COLOURS[i], ":")
        if name == "W_K":
            direct_label(ax, ranks[-1], np.exp(largest[-1]), "worst", "dimgrey", (8, 4))
            direct_label(ax, ranks[-1], np.exp(typical[-1]), "median", "dimgrey", (10, -2))
    before, after = dataset.example.values
    ax.plot([1], [after / before], "*", color=style.BLACK, ms=8)
    direct_label(ax, 1, after / before, "written down", style.BLACK, (6, 0))
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, y=True)
    ax.set_ylim(bottom=0.7 * ax.get_ylim()[0])
    ax.set(xlabel="rank kept", xticks=ranks, ylabel="|G| after / before")
    ax.set_title("|G_t| of that layer")
    ax.legend(loc="upper right")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    _, samples = evidence(claims, dataset)
    shares = {id: float(np.mean(samples[id])) for id in ("sum", "sum_when_trained")}
    before, after = dataset.example.values
    far = float(np.exp(np.log(dataset.over_ridge).mean()))
    return (
        f"Truncation never raises A2's upper bounds (a theorem), but the sum Σ|G|² of its Theorem "
        f"2 in {shares['sum']:.0%} of random and {shares['sum_when_trained']:.0%} of trained "
        f"cases. In a, dots are random stacks, {config.seeds} seeds of {config.draws}; open "
        f"squares are {dataset.sizes['run']} trained stacks ({left_out(dataset)} diverged) with "
        f"{far:.3g} times ridge's risk. a and c show medians, d means with {level()} intervals; "
        f"dotted lines are deviations of logs. The star in e is written down: {before:.2g} becomes "
        f"{after:.2g}. "
    )
