"""Reversals by hand and by ascent, and maps of where random linear stacks amplify."""

import numpy as np

from experiments.flow.amplification_limits.claims import changes
from experiments.flow.amplification_limits.config import DIRECTIONS, EXAMPLES, MAPS
from lsa_lab import results
from lsa_lab.harness import style

PRINTED = (1, 2, 4, 8, 16, 64, 200)
MARKED = (*PRINTED, 32, 128)


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(11.0, 6.9, (2, 3))
    _draw_reversals(axes[0], dataset)
    _draw_ascent(axes[1], dataset, config)
    for ax, mode in zip(axes[2:4], dataset["mode"].values, strict=True):
        _draw_growth(ax, dataset.growth.sel(mode=mode))
        ax.set(title=f"grows in every layer, {mode}", xlabel="feedback", ylabel="gain")
    for ax, name in zip(axes[4:], (MAPS[0], MAPS[2]), strict=True):
        _draw_couplings(ax, dataset.sel(map=name))
        ax.set(title=f"ends larger: {name}", xlabel="κ of the first", ylabel="κ of the second")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)

    def numbers(values):
        return ", ".join(f"{value:.3g}" for value in np.ravel(values))

    def rows(name):
        return "; ".join(numbers(row) for row in np.atleast_2d(dataset[f"found_{name}"]))

    printed = [depth for depth in PRINTED if depth <= config.layers]
    ratios = dataset.example.sel(side="network", layer=printed)
    right = dataset.agreement.median("run")
    dropped, total = int(dataset.dropped.sum()), dataset.dropped.size * config.pairs
    return (
        "Depth amplifies most pairs of lone demonstrations if feedback is positive or weights are "
        "large; weak negative feedback and descent can reverse them. So does much of what ascent "
        f"finds. a: ratios after {numbers(printed)} layers; lines: closed forms. Width 1, "
        f"w_pv w_kq = -0.01, d = 1.5 and 0.8, q = 0.5: {numbers(ratios[0])}. Descent, η = 0.15, "
        f"x = (2, 0) and (0.6, 0), x_query = (1, 0.3): {numbers(ratios[1])}. Contributions, "
        "w_kq = (0, 1; -1, 0), w_pv = (0, 0; 0, 1), d = (0, 1), κ = 0, and (1, 0.5), "
        f"κ = 0.5, q = (1, 0): {numbers(ratios[2])}. By ascent, tied, w_kq = "
        f"({rows('w_kq')}), w_pv = ({rows('w_pv')}), d = ({rows('pair')}), x_query = "
        f"({rows('query')}), after 1, 2, ... layers: "
        f"{numbers(np.exp(dataset.found_log_ratio))}. b: median of {config.restarts} restarts "
        f"and the middle 80 %; {style.missing(changes(dataset))} left out as not finite. c, d: "
        f"median over {config.runs} runs of the share of {config.pairs} pairs; {dropped} of "
        f"{total} overflow, left out; feedback 1 is w_kq = w_pv = cI, -1 has w_pv = -cI, 0 is "
        f"random. The larger κ wins for {float(right[0]):.0%} of the pairs with κ > -1 in e, for "
        f"{float(right[2]):.0%} in f."
    )


def _draw_reversals(ax, dataset):
    layers = dataset.layer.values
    marked = layers[np.isin(layers, MARKED)]
    for name, color, marker in zip(EXAMPLES, style.COLOURS, style.MARKERS, strict=False):
        ratios = dataset.example.sel(which=name)
        style.line(ax, layers, ratios.sel(side="closed form"), color=color)
        points = ratios.sel(side="network", layer=marked)
        ax.plot(marked, points, marker, color=color, label=name)
    path = np.exp(dataset.found_log_ratio.values)
    ax.plot(np.arange(len(path)) + 1, path, "v-", color=style.COLOURS[3], label="found by ascent")
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True, y=True, ticks=PRINTED)
    ax.set(title="by hand and by ascent", xlabel="layers", ylabel="ratio", ylim=(1e-2, 1e3))
    ax.legend(loc="upper right")


def _draw_ascent(ax, dataset, config):
    change = changes(dataset)
    for name, color, marker in zip(DIRECTIONS, style.COLOURS[1::-1], "sv", strict=True):
        runs = change.sel(direction=name)
        style.band(ax, dataset.budget.values, runs, f"{name} found", color, marker)
    ax.axhspan(-config.small, config.small, color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, x=True, ticks=dataset.budget.values)
    ax.set_yscale("symlog", linthresh=1)
    ax.set(title="ascent over weights and tokens", xlabel="budget |w_kq| |w_pv|")
    ax.set(ylabel=f"change of log ratio, {config.search_depth} layers")
    ax.legend(loc="upper left")


def _draw_growth(ax, growth):
    share = growth.median("run").transpose("gain", "feedback")
    rows, columns = np.arange(share.sizes["gain"]), np.arange(share.sizes["feedback"])
    _draw_shares(ax, columns, rows, share)
    for (i, j), value in np.ndenumerate(share.values):
        pale = abs(value - 0.5) < 0.3
        text = {"ha": "center", "va": "center", "color": "black" if pale else "white"}
        ax.text(j, i, f"{value:.2f}"[1:] if value < 1 else "1", fontsize=6, **text)
    ax.set_xticks(columns, [f"{f:g}" for f in share.feedback.values], fontsize=6)
    ax.set_yticks(rows, [f"{g:g}" for g in share.gain.values])


def _draw_couplings(ax, plane):
    """Cells with fewer than four pairs are left white."""
    edges = plane.edge.values
    _draw_shares(ax, edges, edges, plane.larger.where(plane["count"] >= 4).T)
    ax.plot(edges, edges, color=style.BLACK, lw=0.8, ls="--")


def _draw_shares(ax, x, y, shares):
    mesh = ax.pcolormesh(x, y, shares.values, cmap="PuOr_r", vmin=0, vmax=1)
    ax.figure.colorbar(mesh, ax=ax, fraction=0.05)
