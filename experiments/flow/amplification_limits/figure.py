"""Reversals by hand and by ascent, and maps of where random linear stacks amplify."""

import numpy as np

from experiments.flow.amplification_limits.claims import changes
from experiments.flow.amplification_limits.config import DIRECTIONS, EXAMPLES, MAPS
from lsa_lab import results
from lsa_lab.harness import style

PRINTED = (1, 2, 4, 8, 16, 64, 200)
MARKED = (*PRINTED, 32, 128)
TITLES = dict(zip(MAPS, ("κ: contribution", "", "κ: flow"), strict=True))


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 4.7, (2, 3))
    _draw_reversals(axes[0], dataset)
    _draw_ascent(axes[1], dataset, config)
    growing = [
        _draw_growth(ax, dataset.growth.sel(mode=mode))
        for ax, mode in zip(axes[2:4], dataset["mode"].values, strict=True)
    ]
    for ax, name in zip(axes[4:], (MAPS[0], MAPS[2]), strict=True):
        _draw_couplings(ax, dataset.sel(map=name))
        ax.set(title=TITLES[name], xlabel="κ of the first", ylabel="κ of the second")
    figure.colorbar(growing[0], ax=axes, fraction=0.03, label="share of the pairs")
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
        f"finds. a: ratios after {numbers(printed)} layers; lines: closed forms, all "
        "three theorems. Width 1, "
        f"w_pv w_kq = -0.01, d = 1.5 and 0.8, q = 0.5: {numbers(ratios[0])}. Descent, η = 0.15, "
        f"x = (2, 0) and (0.6, 0), x_query = (1, 0.3): {numbers(ratios[1])}. Contributions, "
        "w_kq = (0, 1; -1, 0), w_pv = (0, 0; 0, 1), d = (0, 1), κ = 0, and (1, 0.5), "
        f"κ = 0.5, q = (1, 0): {numbers(ratios[2])}. By ascent, tied, w_kq = "
        f"({rows('w_kq')}), w_pv = ({rows('w_pv')}), d = ({rows('pair')}), x_query = "
        f"({rows('query')}), after 1, 2, ... layers: "
        f"{numbers(np.exp(dataset.found_log_ratio))}. b: change by ascent, median "
        f"of {config.restarts} restarts and its interval; {style.missing(changes(dataset))} left "
        "out as not finite. c, d: "
        f"median over {config.runs} runs of the share of {config.pairs} pairs whose ratio, the "
        "larger flow after one layer on top, grows in every layer, each alone (c) and both in one "
        f"prompt (d); {dropped} of {total} overflow, left out; feedback 1 is w_kq = w_pv = cI, -1 "
        "has w_pv = -cI, 0 is random. e, f: the share that ends larger, of contributions of frozen "
        "demonstrations and of flows without a mask. The larger κ wins for "
        f"{float(right[0]):.0%} of the pairs with κ > -1 in e "
        '(docs/theory, "Self-coupling decides growth"), for '
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
    ax.plot(np.arange(len(path)) + 1, path, "v-", color=style.COLOURS[3], label="by ascent")
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True, y=True, ticks=PRINTED)
    ax.set(title="examples", xlabel="layers", ylabel="ratio", ylim=(1e-2, 1e3))
    ax.legend(loc="upper right", handlelength=0.8, handletextpad=0.4, borderpad=0)


def _draw_ascent(ax, dataset, config):
    change = changes(dataset)
    for name, color, marker in zip(DIRECTIONS, style.COLOURS[1::-1], "sv", strict=True):
        runs = change.sel(direction=name).values
        look = dict(fmt=marker, color=color, capsize=2, elinewidth=0.8)
        style.median_points(ax, dataset.budget.values, runs, name, **look)
    ax.axhline(0, color="grey", lw=0.8)
    ax.axhspan(-config.small, config.small, color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, x=True, ticks=dataset.budget.values)
    ax.set_yscale("symlog", linthresh=1)
    ax.set(ylim=(-500, 100))
    ax.set(title="ascent", xlabel="budget |w_kq| |w_pv|")
    ax.set(ylabel=f"change of log ratio, {config.search_depth} layers")
    ax.legend(loc="lower left")


def _draw_growth(ax, growth):
    share = growth.median("run").transpose("gain", "feedback")
    rows, columns = np.arange(share.sizes["gain"]), np.arange(share.sizes["feedback"])
    ax.set_xticks(columns[::2], [f"{f:g}" for f in share.feedback.values[::2]])
    ax.set_yticks(rows, [f"{g:g}" for g in share.gain.values])
    where = {"alone": "alone", "together": "shared"}[str(growth["mode"].values)]
    ax.set(title=f"grows, {where}", xlabel="feedback", ylabel="gain")
    return _draw_shares(ax, columns, rows, share)


def _draw_couplings(ax, plane):
    """Cells with fewer than four pairs are left white."""
    edges = plane.edge.values
    _draw_shares(ax, edges, edges, plane.larger.where(plane["count"] >= 4).T)
    ax.plot(edges, edges, color=style.BLACK, lw=0.8, ls="--")


def _draw_shares(ax, x, y, shares):
    return ax.pcolormesh(x, y, shares.values, cmap="PuOr_r", vmin=0, vmax=1)
