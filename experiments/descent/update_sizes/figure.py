"""Sizes of updates against shots, what clipping and a norm change, and what is judged."""

import numpy as np

from experiments.descent.update_sizes.claims import gaps, over_ridge, samples
from experiments.descent.update_sizes.config import PAIR, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import end_labels

LINEAR, SOFTMAX, GREEN, PURPLE = (
    style.METHOD[name]["color"] for name in ("linear", "softmax", "descent", "GD++")
)
KINDS = {  # of softmax attention without a norm
    "paper": ("Z |ΔW|", PURPLE, "D"),
    "update": ("|ΔW|", SOFTMAX, "s"),
    "written": ("|ΔW φ|", GREEN, "^"),
}
CHANGES = {"change": ("change", SOFTMAX, "s"), "relative change": ("relative", GREEN, "^")}
SLOPES = {
    "linear_grows": "linear: |G|",
    "linear_grows_as_in_the_paper": "linear: n |G|",
    "softmax_grows": "softmax: |ΔW|",
    "softmax_grows_as_in_the_paper": "softmax: Z |ΔW|",
    "written_grows": "softmax: |ΔW φ|",
    "more_sensitive": "change by clipping",
    "relatively_more_sensitive": "the same, relative",
}
NORMS = {
    "norm_shrinks": "|ΔW|",
    "norm_shrinks_share": "|ΔW φ| / |token|",
    "norm_lowers_risk": "excess risk",
}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.3, 2.0), ((1, 1), (1, 1), (1, 1)))
    linear(axes[0], dataset)
    softmax(axes[1], dataset, KINDS, "softmax attention", "size over that in training")
    softmax(axes[2], dataset, CHANGES, "W_V clipped, softmax", "change over that in training")
    models(axes[3], dataset)
    rows, judged = statements(results.config_of(dataset)), samples(dataset)
    judged_panel.rows(axes[4], rows, judged, SLOPES, (-1, 1.2))
    axes[4].set(title="judged: slopes over n", xlabel="d log size / d log n")
    axes[5].set_xscale("log")
    judged_panel.rows(axes[5], rows, judged, NORMS, (0.1, 10))
    axes[5].set(title="judged: norm / no norm", xlabel="ratio")
    return figure


def _relative(ax, factors, runs, words, color, marker):
    """Runs [R, factors] of a mean over layers, over their value in training; the end's height."""
    own = runs / runs[:, [int(np.argmin(np.abs(np.log(factors))))]]
    style.mean_points(ax, factors, own, color=color, marker=marker, lw=0.8, capsize=2)
    return {words: own.mean(0)[-1]}


def linear(ax, dataset):
    """|G_t| of a linear stack by layer."""
    factors, ends = dataset.factor.values, {}
    colors = [LINEAR, SOFTMAX, GREEN, PURPLE]
    for layer, color in zip(dataset.linear_layer.values, colors, strict=False):
        runs = dataset.linear.sel(linear_layer=layer).transpose("linear_run", "factor").values
        ends |= _relative(ax, factors, runs, f"layer {layer}", color, "o")
    style.log_axes(ax, x=True, y=True, ticks=factors)
    ax.set(xlabel="shots / shots in training", ylabel="|G_t| over that in training")
    ax.set_title("linear stack, by layer")
    end_labels(ax, ends, colors[: len(ends)])


def softmax(ax, dataset, kinds, title, ylabel):
    factors, ends = dataset.factor.values, {}
    for kind, (words, color, marker) in kinds.items():
        sizes = dataset["size"].sel(model="no norm", kind=kind).mean("layer")
        runs = sizes.transpose("run", "factor").values
        ends |= _relative(ax, factors, runs, words, color, marker)
    style.log_axes(ax, x=True, y=True, ticks=factors)
    ax.set(xlabel="shots / shots in training", ylabel=ylabel, title=title)
    end_labels(ax, ends, [color for _, color, _ in kinds.values()])


def models(ax, dataset):
    """Every model's update beside its generalisation error."""
    size = dataset["size"].sel(kind="update", factor=1.0).mean("layer")
    for name, face in zip(PAIR, (SOFTMAX, "white"), strict=True):
        gap = gaps(dataset).sel(model=name)
        ax.plot(size.sel(model=name), gap, "s", color=SOFTMAX, mfc=face, label=name)
    style.log_axes(ax, x=True)
    ax.set(xlabel="|ΔW|", ylabel="query's error − demonstrations'", title="generalisation")
    ax.legend()


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    mean = {name: float(np.mean(values)) for name, values in judged.items()}
    ratio = {name: float(np.exp(np.log(judged[name]).mean())) for name in NORMS}
    far, pair = over_ridge(dataset), config.pair[0]
    lost = dataset.sizes["linear_started"] - dataset.sizes["linear_run"]
    return (
        f"With n demonstrations trained updates change as n^{mean['linear_grows']:.2g} (linear) "
        f"and n^{mean['softmax_grows']:.2g} (softmax); a norm changes |ΔW| by a factor "
        f"{ratio['norm_shrinks']:.2g} and the risk by {ratio['norm_lowers_risk']:.3g}. "
        f"a to c: root mean squares over prompts, over those at the shots of training, means of "
        f"runs with 95 % intervals; b, c: softmax attention without a norm, |ΔW| in the feature "
        f"space of its kernel, Z its normaliser, |ΔW φ| what it adds to the query; c: W_V of a "
        f"layer clipped at rate {config.rate:g}. d: one point a model. e, f: {judged_panel.KEY}. "
        f"{dataset.sizes['run']} seeds of two models with d = {pair.task.d}, n = "
        f"{max(pair.task.lengths)}, {pair.architecture.depth} layers, whose excess risk is "
        f"{far['no norm']:.3g} (no norm) and {far['norm']:.3g} times that of ridge regression; "
        f"the gap with a norm less that without is {mean['norm_lowers_gap']:.2g}. "
        f"{dataset.sizes['linear_run']} linear stacks ({lost} diverged and left out)."
    )
