"""How much depth amplifies, by width: the lead, the disparity, and what is judged of them."""

import numpy as np

from experiments.flow.width_and_ratio import claims
from experiments.flow.width_and_ratio.claims import growths, risk_ratios, widths
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

SHORT = {  # kind: its name
    "linear": "linear, slots",
    "linear, covariates": "linear, cov.",
    "softmax": "softmax",
    "trained linear": "trained linear",
}


def plot(dataset):
    statements, samples = evidence(claims, dataset)
    figure, axes = style.stacked(6.75, (2.3, 1.7), ((1, 1), (1, 1)))
    for ax, which in zip(axes, (0, 1), strict=False):
        _draw(ax, dataset, which)
    axes[0].set(ylabel="change of the log ratio", title="the lead")
    axes[1].set(ylabel="log growth of |log ratio|", title="the disparity")
    for ax, family in zip(axes[2:], ("wider_lead", "equal_disparity"), strict=True):
        ids = [cell.id for cell in cells_of(statements) if cell.family == family]
        judged_panel.rows(ax, statements, samples, (-0.3, 0.3), ids)
        ax.set(xlabel="slope for a doubling of the width")
    axes[2].set(title="wider lead?")
    axes[3].set(title="same disparity?")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    changes = {}
    for kind in SHORT:
        growth = np.exp(np.median(growths(dataset, kind)[1], axis=0))
        changes[kind] = f"{growth[0]:.2f} to {growth[-1]:.2f}"
    ratios = ", ".join(
        f"{ratio:.2f} (width {width})"
        for width, ratio in zip(dataset.trained_width.values, risk_ratios(dataset), strict=True)
    )
    dropped = int(dataset.dropped.sum()) + int(dataset.trained_dropped.sum())
    return (
        "From the narrowest stack to the widest the growth of the disparity goes from "
        f"{changes['linear']} (random linear), {changes['softmax']} (random softmax), "
        f"{changes['trained linear']} (trained). "
        f"a, b: medians over runs, {level()} intervals; the larger flow of layer 1 on top in a, no "
        f"orientation in b. c, d: {judged_panel.KEY}; c: in random linear "
        f"stacks of the lead's logarithm. Random stacks: gain {config.gain:g}, "
        f"{config.depth} layers, each demonstration alone, flows to the query's token; trained: "
        f"{config.trained_depth} layers, two of {config.shots} in a prompt, flows to the "
        f"prediction, excess risk over that of the Bayes rule {ratios}. d = {config.d} "
        f"({config.trained_d} trained); {config.runs} runs of {config.pairs} pairs, "
        f"{config.seeds} trainings of {config.trained_pairs}; {dropped} pairs overflow, left out."
    )


def _draw(ax, dataset, which):
    heights, colors = {}, []
    for i, (kind, name) in enumerate(SHORT.items()):
        look = {"color": style.COLOURS[i], "marker": style.MARKERS[i]}
        x, runs = widths(dataset, kind), growths(dataset, kind)[which]
        style.median_points(ax, x, runs, capsize=2, elinewidth=0.8, ms=4, lw=0.8, **look)
        heights[name] = float(np.median(runs[:, -1]))
        colors.append(look["color"])
    ax.axhline(0, color="grey", lw=0.8)
    ticks = sorted({*dataset.width.values, *dataset.trained_width.values})
    style.log_axes(ax, x=True, ticks=ticks)
    ax.set(xlabel="width")
    end_labels(ax, heights, colors)
