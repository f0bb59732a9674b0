"""The figure of `amplification_limits`, drawn from its result alone."""

import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification_limits import reversals
from experiments.flow.amplification_limits.config import MAPS
from lsa_lab import results
from lsa_lab.harness import style

PRINTED = (1, 2, 4, 8, 16, 64, 200)


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(11.0, 7.4, (2, 3))
    layers = dataset.layer.values
    shown = layers[np.isin(layers, (*PRINTED, 32, 128))]
    for name, color, marker in zip(reversals.EXAMPLES, style.COLOURS, style.MARKERS, strict=False):
        there = dataset.example.sel(which=name)
        style.line(axes[0], layers, there.sel(side="closed form"), color=color)
        points = there.sel(side="network", layer=shown)
        axes[0].plot(shown, points, marker, color=color, label=name)
    path = np.exp(dataset.found_log_ratio.values)
    axes[0].plot(
        np.arange(len(path)) + 1, path, "v-", color=style.COLOURS[3], label="found by ascent"
    )
    axes[0].axhline(1, color="grey", lw=0.8, ls="--")
    style.log_axes(axes[0], x=True, y=True, ticks=[1, 2, 4, 8, 16, 64, 200])
    axes[0].set(title="by hand and by ascent", xlabel="layers", ylabel="ratio", ylim=(1e-2, 1e3))
    axes[0].legend(loc="upper right")
    lost = 0
    change = dataset.search.isel(search_layer=-1) - dataset.search.isel(search_layer=0)
    for name, color, marker in zip(reversals.DIRECTIONS, style.COLOURS[1::-1], "sv", strict=True):
        runs = change.sel(direction=name).transpose("restart", "budget")
        lost += style.band(axes[1], dataset.budget.values, runs, f"{name} found", color, marker)
    axes[1].axhspan(-settings.small, settings.small, color="grey", alpha=0.2, lw=0)
    style.log_axes(axes[1], x=True, ticks=dataset.budget.values)
    axes[1].set_yscale("symlog", linthresh=1)
    axes[1].set(title="ascent over weights and tokens", xlabel="budget |w_kq| |w_pv|")
    axes[1].set(ylabel=f"change of log ratio, {settings.search_depth} layers")
    axes[1].legend(loc="upper left")
    colours = dict(cmap="PuOr_r", vmin=0, vmax=1)
    for ax, mode in zip(axes[2:4], pairs.MODES, strict=True):
        share = dataset.growth.sel(mode=mode).median("run").transpose("gain", "feedback")
        rows, columns = np.arange(share.sizes["gain"]), np.arange(share.sizes["feedback"])
        mesh = ax.pcolormesh(columns, rows, share.values, **colours)
        for (i, j), value in np.ndenumerate(share.values):
            pale = abs(value - 0.5) < 0.3
            text = {"ha": "center", "va": "center", "color": "black" if pale else "white"}
            ax.text(j, i, f"{value:.2f}"[1:] if value < 1 else "1", fontsize=6, **text)
        ax.set_xticks(columns, [f"{f:g}" for f in dataset.feedback.values], fontsize=6)
        ax.set_yticks(rows, [f"{g:g}" for g in dataset.gain.values])
        ax.set(title=f"grows in every layer, {mode}", xlabel="feedback", ylabel="gain")
        drawn.colorbar(mesh, ax=ax, fraction=0.05)
    for ax, name in zip(axes[4:], (MAPS[0], MAPS[2]), strict=True):
        edges, there = dataset.edge.values, dataset.sel(map=name)
        larger = there.larger.where(there["count"] >= 4).transpose("second", "first")
        mesh = ax.pcolormesh(edges, edges, larger.values, **colours)
        ax.plot(edges, edges, color=style.BLACK, lw=0.8, ls="--")
        ax.set(title=f"ends larger: {name}", xlabel="κ of the first", ylabel="κ of the second")
        drawn.colorbar(mesh, ax=ax, fraction=0.05)
    style.caption(drawn, caption(dataset, settings, lost))
    return drawn


def caption(dataset, settings, lost):
    def numbers(values):
        return ", ".join(f"{value:.3g}" for value in np.ravel(values))

    def rows(name):
        return "; ".join(numbers(row) for row in np.atleast_2d(dataset[f"found_{name}"]))

    printed = [depth for depth in PRINTED if depth <= settings.layers]
    ratios = dataset.example.sel(side="network", layer=printed)
    right = dataset.agreement.median("run")
    dropped, total = int(dataset.dropped.sum()), dataset.dropped.size * settings.pairs
    return (
        "Depth amplifies the ratio of most pairs where all feedback is positive (c, right), or "
        "where weights are large and each demonstration is alone (c, top; d); no linear stack is "
        "safe by being one (a, b). "
        f"a: ratios after {numbers(printed)} layers; lines: closed forms. Width 1, w_pv w_kq = "
        f"-0.01, d = 1.5 and 0.8, q = 0.5: {numbers(ratios[0])}. Descent, η = 0.15, x = (2, 0) and "
        f"(0.6, 0), x_query = (1, 0.3): {numbers(ratios[1])}. Contributions, w_kq = (0, 1; -1, 0), "
        "w_pv = (0, 0; 0, 1), d = (0, 1), κ = 0, and (1, 0.5), κ = 0.5, q = (1, 0): "
        f"{numbers(ratios[2])}. By ascent, tied, w_kq = ({rows('w_kq')}), w_pv = ({rows('w_pv')}), "
        f"d = ({rows('pair')}), x_query = ({rows('query')}), after 1, 2, ... layers: "
        f"{numbers(np.exp(dataset.found_log_ratio))}. b: median of {settings.restarts} restarts "
        f"and the middle 80 %; {lost} left out as not finite. c, d: median over {settings.runs} "
        f"runs of the share of {settings.pairs} pairs; {dropped} of {total} overflow, left out; "
        "feedback 1 is w_kq = w_pv = cI, -1 has w_pv = -cI, 0 is random. The larger κ wins for "
        f"{float(right[0]):.0%} of the pairs with κ > -1 in e, for {float(right[2]):.0%} in f."
    )
