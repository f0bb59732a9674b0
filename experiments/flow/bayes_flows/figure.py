"""How unequal flows are along the training of stacks of any depth, beside the Bayes rule's."""

import numpy as np

from experiments.flow.bayes_flows import claims
from experiments.flow.bayes_flows.claims import BAND, NEAR, numbers
from experiments.flow.bayes_flows.config import PRIORS
from experiments.models.specs import KERNELS
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

ASCENT = {"least": style.BLACK, "largest": "grey"}


def plot(dataset):
    flows, config = numbers(dataset), results.config_of(dataset)
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    for kernel in KERNELS:
        look = style.METHOD[kernel]
        for prior in PRIORS:
            filled = {} if prior == "dense" else {"mfc": "white"}
            x, y = (
                np.concatenate([what(kernel, prior, d)[:, 1:].ravel() for d in config.depths])
                for what in (flows.excess, flows.end)
            )
            points = dict(ls="", marker=look["marker"], ms=3, mew=0.6, color=look["color"])
            axes[0].plot(x, y, label=f"{kernel}, {prior}", **points | filled)
        for depth in config.depths[1:]:
            rows = flows.agreement(kernel, "dense", depth)
            layers = np.arange(depth) + 1
            style.median_points(axes[1], layers / depth, rows, lw=0.8, capsize=1, **look)
    style.log_axes(axes[0], x=True)
    axes[0].axhspan(1 - BAND, 1 + BAND, color="grey", alpha=0.2, lw=0)
    axes[0].axvline(NEAR, ymax=0.5, color="grey", lw=0.8)
    axes[0].set(xlabel="excess risk / the Bayes rule's risk", ylabel="|log ratio| / Bayes rule's")
    axes[0].set(title="Near in risk is near in flow")
    axes[0].legend(loc="upper left")
    axes[1].axhline(1, color="grey", lw=0.8)
    axes[1].set(xlabel="layer / depth", ylabel="correlation of log flows")
    axes[1].set(title="Flows approach Bayes's by layer")
    return figure


def appendix(dataset):
    """Reversals that ascent finds, and a map of where random linear stacks amplify."""
    figure, axes = style.figure(6.75, 2.7, (1, 2), first="c")
    draw_ascent(axes[0], dataset)
    growing = draw_growth(axes[1], parts.part(dataset, "limits").growth.sel(mode="alone"))
    figure.colorbar(growing, ax=axes[1], label="share of pairs that grow", aspect=25, pad=0.02)
    return figure


def caption(dataset) -> str:
    flows, config = numbers(dataset), results.config_of(dataset)
    kinds = [(k, p, d) for k in KERNELS for p in PRIORS for d in config.depths]
    ends = {kind: flows.once_near(*kind) for kind in kinds}
    near = {kind: np.median(values) for kind, values in ends.items() if values is not None}
    answer = "No stack comes near the Bayes rule in risk in all of its runs."
    if near:
        kernels = " and ".join(dict.fromkeys(kernel for kernel, _, _ in near))
        apart = max(abs(end - 1) for end in near.values())
        answer = (
            f"When {kernels} stacks come near the Bayes rule in risk, their gradients have its "
            f"own disparity, to within {apart:.0%}."
        )
    lowers = -np.median(evidence(claims, dataset)[1]["theorem_1"])
    dropped = flows.limits.dropped
    return (
        f"{answer} All runs come near in {len(near)} of {len(ends)} kinds. Points in a are "
        f"checkpoints; the band is {NEAR:.0%}. In c ascent finds stacks that "
        f"lower the log ratio by {lowers:.0f}. In d both weights are cI at feedback 1, and at -1 "
        f"one changes sign; {int(dropped.sum())} of {dropped.size * config.limits.pairs} pairs "
        f"overflow. {config.runs} runs, d = {config.d}, n = {config.n}."
    )


def draw_ascent(ax, dataset):
    """Medians of the changes that ascent finds; the grey band counts as no change."""
    change = numbers(dataset).changes()
    for (name, color), marker in zip(ASCENT.items(), "v^", strict=True):
        runs = change.sel(direction=name).values
        look = {"fmt": marker, "color": color, "capsize": 2, "elinewidth": 0.8}
        style.median_points(ax, change.budget.values, runs, **look)
        middle = np.median(runs[:, -1])
        direct_label(ax, change.budget.values[-1], middle, f"{name} change", color, (-2, -10))
    ax.axhline(0, color="grey", lw=0.8)
    ax.axhspan(-0.5, 0.5, color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, x=True, ticks=change.budget.values)
    ax.set_yscale("symlog", linthresh=1)
    ax.set(ylim=(-500, 500), title="Ascent finds rises and falls", xlabel="budget |w_kq| |w_pv|")
    depth = results.config_of(dataset).limits.search_depth
    ax.set(ylabel=f"change of log ratio, {depth} layers")


def draw_growth(ax, growth):
    """The share of pairs whose ratio grows in every layer of random stacks."""
    share = growth.median("run").transpose("gain", "feedback")
    rows, columns = np.arange(share.sizes["gain"]), np.arange(share.sizes["feedback"])
    ax.set_xticks(columns[::4], [f"{f:g}" for f in share.feedback.values[::4]])
    ax.set_yticks(rows, [f"{g:g}" for g in share.gain.values])
    ax.set(xlabel="feedback", ylabel="gain", title="Large gains or feedback 1 amplify")
    return ax.pcolormesh(columns, rows, share.values, cmap="PuOr_r", vmin=0, vmax=1)
