"""Maps of where random linear stacks amplify, and reversals by hand and by ascent."""

import numpy as np

from experiments.flow.amplification_limits import claims
from experiments.flow.amplification_limits.claims import SMALL, changes
from experiments.flow.amplification_limits.config import EXAMPLES, MAPS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, off_scale
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

PRINTED = (1, 2, 4, 8, 16, 64, 200)
MARKED = (*PRINTED, 32, 128)
TITLES = {MAPS[0]: "contribution, frozen", MAPS[2]: "flow, not masked"}
LOOKS = dict(  # of reversals, and where their names stand: layer, points
    zip(
        EXAMPLES,
        (
            ({"color": style.COLOURS[0], "marker": "o"}, "width 1", 16, (4, 5)),
            (style.METHOD["descent"], "descent", 64, (0, -5)),
            ({"color": style.COLOURS[5], "marker": "s"}, "self-\ncoupling", 16, (5, 0)),
        ),
        strict=True,
    )
)
ASCENT = {"least": style.BLACK, "largest": "grey"}


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.4, 2.4), ((1, 1, 1.2), (1, 1)))
    for ax, mode in zip(axes, dataset["mode"].values, strict=False):
        growing = _draw_growth(ax, dataset.growth.sel(mode=mode))
    axes[0].set_ylabel("gain")
    figure.colorbar(growing, ax=axes[:2], label="share of pairs that grow", aspect=25, pad=0.02)
    _draw_reversals(axes[2], dataset)
    _draw_ascent(axes[3], dataset, config)
    judged_panel.rows(axes[4], *evidence(claims, dataset), (-1.0, 1.05))
    axes[4].set(title="what is judged", xlabel="log ratio (first three) or share of pairs")
    return figure


def appendix(dataset):
    """Self-couplings of two demonstrations, and which of them ends larger."""
    figure, axes = style.figure(6.75, 2.8, (1, 2), "f")
    for ax, (name, title) in zip(axes, TITLES.items(), strict=True):
        larger = _draw_couplings(ax, dataset.sel(map=name))
        ax.set(title=title, xlabel="κ of the first", ylabel="κ of the second")
    figure.colorbar(larger, ax=axes, label="share whose first ends larger", aspect=25, pad=0.02)
    return figure


def caption(dataset) -> str:
    config, right = results.config_of(dataset), dataset.agreement.median("run")
    dropped, total = int(dataset.dropped.sum()), dataset.dropped.size * config.pairs
    return (
        "Depth amplifies most pairs of lone demonstrations if w_kq = w_pv or weights are large; "
        "weak negative feedback and descent can reverse them. a, b: share of pairs whose ratio "
        f"grows in every layer, median of {config.runs} runs of {config.pairs} pairs; feedback 1 "
        "is w_kq = w_pv = cI. c: lines are closed forms; result.nc has the weights that ascent "
        f"found (found_*). d: {config.restarts} restarts. "
        f"f, g: the larger κ wins for {float(right[0]):.0%} and "
        f"{float(right[2]):.0%} of the pairs; {dropped} of {total} overflow."
    )


def _draw_reversals(ax, dataset):
    layers = dataset.layer.values
    marked = layers[np.isin(layers, MARKED)]
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True, y=True, ticks=PRINTED)
    ax.set(title="the order turns", xlabel="layers", ylabel="ratio of two flows", ylim=(1e-3, 10))
    for name, (look, label, place, offset) in LOOKS.items():
        ratios = dataset.example.sel(which=name)
        style.line(ax, layers, ratios.sel(side="closed form"), color=look["color"])
        points = ratios.sel(side="network", layer=marked)
        ax.plot(marked, points, ls="none", **look)
        _mark_end(ax, marked, points.values, look["color"])
        if place in layers:
            height = float(ratios.sel(side="network", layer=place))
            direct_label(ax, place, height, label, look["color"], offset)
    path, color = np.exp(dataset.found_log_ratio.values), ASCENT["least"]
    ax.plot(np.arange(len(path)) + 1, path, "v-", color=color)
    _mark_end(ax, np.arange(len(path)) + 1, path, color)
    direct_label(ax, 2, 0.015, "ascent", color, (4, 0))


def _mark_end(ax, x, values, color):
    """Points below the panel, with the number of the last."""
    low = ax.get_ylim()[0]
    for layer in x[:-1][values[:-1] < low]:
        ax.plot(layer, low, "v", color=color, mfc="white", ms=5, clip_on=False, zorder=4)
    off_scale(ax, x[-1:], values[-1:], color, ".0e")


def _draw_ascent(ax, dataset, config):
    change = changes(dataset)
    for (name, color), marker in zip(ASCENT.items(), "v^", strict=True):
        runs = change.sel(direction=name).values
        look = {"fmt": marker, "color": color, "capsize": 2, "elinewidth": 0.8}
        style.median_points(ax, dataset.budget.values, runs, **look)
        middle = np.median(runs[:, -1])
        direct_label(ax, dataset.budget.values[-1], middle, f"{name} change", color, (-2, -10))
    ax.axhline(0, color="grey", lw=0.8)
    ax.axhspan(-SMALL, SMALL, color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, x=True, ticks=dataset.budget.values)
    ax.set_yscale("symlog", linthresh=1)
    ax.set(ylim=(-500, 500), title="ascent finds both", xlabel="budget |w_kq| |w_pv|")
    ax.set(ylabel=f"change of log ratio, {config.search_depth} layers")


def _draw_growth(ax, growth):
    share = growth.median("run").transpose("gain", "feedback")
    rows, columns = np.arange(share.sizes["gain"]), np.arange(share.sizes["feedback"])
    ax.set_xticks(columns[::4], [f"{f:g}" for f in share.feedback.values[::4]])
    ax.set_yticks(rows, [f"{g:g}" for g in share.gain.values])
    where = {"alone": "alone", "together": "shared"}[str(growth["mode"].values)]
    ax.set(title=f"grows, {where}", xlabel="feedback")
    return _draw_shares(ax, columns, rows, share)


def _draw_couplings(ax, plane):
    """Cells with fewer than four pairs are left white."""
    edges = plane.edge.values
    ax.plot(edges, edges, color=style.BLACK, lw=0.8, ls="--")
    return _draw_shares(ax, edges, edges, plane.larger.where(plane["count"] >= 4).T)


def _draw_shares(ax, x, y, shares):
    return ax.pcolormesh(x, y, shares.values, cmap="PuOr_r", vmin=0, vmax=1)
