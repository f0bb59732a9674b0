"""How often each norm rises when one matrix of a stack is truncated, and how far the sum moves."""

import numpy as np

from experiments.clipping.drawing import quality
from experiments.clipping.truncation_norms import claims
from experiments.clipping.truncation_norms.claims import factored, layer_means, tables_of_rises
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level


def plot(dataset):
    return style.panels(dataset, 3.6, plot_table, plot_movement)


def plot_table(ax, dataset):
    """One row a norm: the share in which it rises, random stacks above trained ones."""
    proved, others = tables_of_rises(dataset)
    table = proved | others
    for i, (name, (random, trained)) in enumerate(table.items()):
        color = style.COLOURS[0 if name in proved else 1]
        kinds = ((random, -0.15, "o", color), (trained, 0.15, "s", "white"))
        for shares, aside, marker, face in kinds:
            if shares is not None:
                ax.plot(np.quantile(shares, style.QUANTILES), [i + aside] * 2, color=color, lw=0.8)
                ax.plot(np.median(shares), i + aside, marker, color=color, mfc=face)
    ax.set(yticks=range(len(table)), yticklabels=list(table), ylim=(len(table) - 0.4, -0.6))
    ax.tick_params(axis="y", labelsize=7)
    for i, words, first in ((0, "never rises: a theorem", 0), (1, "can rise", len(proved))):
        ax.text(0.35, first, words, color=style.COLOURS[i], fontsize=7, va="center")
    ax.axvline(claims.RARELY, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="share in which it rises", xlim=(-0.04, 1.04), title="Most norms can rise")


def plot_movement(ax, dataset):
    """How far Σ|G|² moves with the layer that is truncated, and the terms that the layer touches:
    means of |log(after / before)|."""
    layers, ends, colors = dataset.layer.values, {}, []
    kinds = (factored(dataset), "random", style.COLOURS[0]), (dataset, "trained", style.COLOURS[1])
    for part, kind, color in kinds:
        for words, name, look in (("all terms", "moves", "o-"), ("touched", "touched", "s:")):
            values = layer_means(part[f"{kind}_{name}"])
            style.mean_band(ax, layers, values, None, color, look[0], look[1])
            ends[f"{words}, {kind}"] = values.mean(0)[-1]
            colors.append(color)
    style.log_axes(ax, y=True)
    ax.set(xlabel="layer truncated", xticks=layers, ylabel="|log(after / before)|")
    ax.set_title("Sums move less late")
    end_labels(ax, ends, colors)


def caption(dataset) -> str:
    _, samples = evidence(claims, dataset)
    shares = {id: float(np.mean(samples[id])) for id in ("sum", "sum_when_trained")}
    last = float(dataset.trained_share.mean("run")[-1])
    return (
        f"In trained stacks {shares['sum_when_trained']:.0%} of truncations raise Σ|G|², the sum "
        "of squared updates, though no truncation raises A2's upper bounds. In random stacks "
        f"{shares['sum']:.0%} of truncations raise the sum. The last layer of a trained stack "
        f"touches {last:.1%} of it. Dots in a are medians of random stacks, and squares are those "
        f"of trained ones. Points in b are means with {level()} intervals. "
        + quality(dataset, dataset.over_ridge, 1)
    )
