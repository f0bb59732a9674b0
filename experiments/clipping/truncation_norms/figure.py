"""How often each norm rises, and by how much, when one matrix of a stack is truncated."""

import numpy as np

from experiments.clipping.diverged_runs import left_out
from experiments.clipping.truncation_norms.claims import by_layer, rises_by_norm, samples
from experiments.clipping.truncation_norms.config import MATRICES, MODULES, MOVEMENTS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

SHARES = {
    "own": "own |G_t|",
    "sum": "Σ|G|²",
    "sum_when_trained": "Σ|G|², trained",
    "mlp_with_residuals": "block with MLP",
    "unprovable": "can rise, least",
}
LOGS = {
    "typical": "typical",
    "deep_is_steady": "moves",
    "deep_is_steady_when_trained": "moves, trained",
    "deep_varies_less": "varies",
    "deep_varies_less_when_trained": "varies, trained",
}


def plot(dataset):
    config, judged = results.config_of(dataset), samples(dataset)
    figure, axes = style.figure(6.75, 7.4, (3, 2))
    plot_table(axes[0], dataset, config)
    plot_sizes(axes[1], dataset)
    plot_sum(axes[2], dataset)
    plot_movement(axes[3], dataset)
    judged_panel.rows(axes[4], statements(config), judged, SHARES, (0, 1))
    axes[4].set(xlabel="share in which it rises")
    axes[5].set_xscale("symlog", linthresh=0.01)
    judged_panel.rows(axes[5], statements(config), judged, LOGS, (-5, 0.01))
    axes[5].set(xlabel="log ratio; last layer - first layer")
    return figure


def plot_table(ax, dataset, config):
    """One row a norm: the share in which it rises, random stacks above trained ones."""
    table = rises_by_norm(dataset)
    for i, row in enumerate(table.values()):
        color = style.COLOURS[0 if row.provable else 1]
        kinds = ((row.random, -0.15, "o", color), (row.trained, 0.15, "s", "white"))
        for shares, aside, marker, face in kinds:
            if shares is not None:
                ax.plot(np.quantile(shares, style.QUANTILES), [i + aside] * 2, color=color, lw=0.8)
                ax.plot(np.median(shares), i + aside, marker, color=color, mfc=face)
    ax.set(yticks=range(len(table)), yticklabels=list(table), ylim=(len(table) - 0.4, -0.6))
    ax.tick_params(axis="y", labelsize=6.5)
    ax.axvline(config.rarely, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="share in which it rises", xlim=(-0.04, 1.04))
    ax.set_title("norm, matrix truncated")


def plot_movement(ax, dataset):
    """How far Σ|G|² moves with the layer that is truncated: the mean |log| and its deviation."""
    layers, factored = dataset.layer.values, dataset.sel(module=list(MATRICES))
    kinds = (factored, "random", style.COLOURS[0]), (dataset, "trained", style.COLOURS[1])
    for part, kind, color in kinds:
        moves, spread = (by_layer(part[f"{kind}_{name}"]) for name in MOVEMENTS)
        style.mean_band(ax, layers, moves, f"moves, {kind}", color)
        style.mean_band(ax, layers, spread, f"varies, {kind}", color, "s", ":")
    style.log_axes(ax, y=True)
    ax.set(xlabel="layer truncated", xticks=layers, ylabel="|log(after / before)|")
    ax.set_title("Σ|G|², how far it moves")
    ax.legend()


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
    ax.set(xlabel="layer truncated", xticks=layers, ylim=(-0.04, 1.7))
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
    far = float(np.exp(np.log(dataset.over_ridge).mean()))
    return (
        f"Truncation never raises A2's upper bounds (a theorem), but the sum Σ|G|² of its Theorem "
        f"2 in {shares['sum']:.0%} of random and {shares['sum_when_trained']:.0%} of trained "
        f"cases. "
        f'Blue in a: never rises, a theorem (docs/theory, "Norms under truncation"); orange: it '
        f"can. Dots: {config.seeds} seeds of {config.draws} random stacks; squares: "
        f"{dataset.sizes['run']} trained stacks of merged weights on {config.draws} prompts each, "
        f"{left_out(dataset)} diverged and left out, whose excess risk is {far:.3g} times that of "
        f"ridge regression (geometric mean); median and the middle 80 %; mean over ranks and "
        f"layers, without the last layer where later |G| count; dashes: what counts as rare. b: "
        f"the median (lines) and the worst (dotted) of all random stacks; the star is "
        f"{before:.2g} becoming {after:.2g}, written down. c: median and the middle 80 %. d: mean "
        f"and its 95 % interval. e, f: {judged_panel.KEY}."
    )
