"""Reversals that ascent finds, and a map of where random linear stacks amplify."""

import numpy as np

from experiments.flow.amplification_limits import claims
from experiments.flow.amplification_limits.claims import SMALL, changes
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

ASCENT = {"least": style.BLACK, "largest": "grey"}


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 2.7, (1, 2))
    _draw_ascent(axes[0], dataset, config)
    growing = _draw_growth(axes[1], dataset.growth.sel(mode="alone"))
    axes[1].set(title="Large gains or feedback 1 amplify", ylabel="gain")
    figure.colorbar(growing, ax=axes[1], label="share of pairs that grow", aspect=25, pad=0.02)
    return figure


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    dropped, total = int(dataset.dropped.sum()), dataset.dropped.size * config.pairs
    return (
        "Not every linear stack amplifies: ascent finds some that lower the log ratio of two flows "
        f"by {-np.median(samples['theorem_1']):.0f}. A flow is the answer's gradient in a "
        f"demonstration. Grey counts as no change. Points are medians with {level()} intervals. "
        "Panel b has pairs of random stacks whose ratio grows in every layer. At feedback 1 "
        "weights of size gain are w_kq = w_pv = cI; at -1 one changes sign. "
        f"{dropped} of {total} pairs overflow."
    )


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
    ax.set(ylim=(-500, 500), title="Ascent finds both", xlabel="budget |w_kq| |w_pv|")
    ax.set(ylabel=f"change of log ratio, {config.search_depth} layers")


def _draw_growth(ax, growth):
    share = growth.median("run").transpose("gain", "feedback")
    rows, columns = np.arange(share.sizes["gain"]), np.arange(share.sizes["feedback"])
    ax.set_xticks(columns[::4], [f"{f:g}" for f in share.feedback.values[::4]])
    ax.set_yticks(rows, [f"{g:g}" for g in share.gain.values])
    ax.set(xlabel="feedback")
    return ax.pcolormesh(columns, rows, share.values, cmap="PuOr_r", vmin=0, vmax=1)
