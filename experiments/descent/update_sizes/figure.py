"""Sizes of updates against shots, what clipping changes of them, and what is judged."""

import numpy as np

from experiments.descent.specs import SOFTMAX as ATTENTION
from experiments.descent.specs import STACK, spec_of
from experiments.descent.update_sizes import claims
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

LINEAR, SOFTMAX, GREEN, PURPLE = (
    style.METHOD[name]["color"] for name in ("linear", "softmax", "descent", "GD++")
)
KINDS = {
    "paper": ("Z |ΔW|", PURPLE, "D"),
    "update": ("|ΔW|", SOFTMAX, "s"),
    "written": ("|ΔW φ|", GREEN, "^"),
}
CHANGES = {"change": ("change", SOFTMAX, "s"), "relative change": ("relative", GREEN, "^")}
SLOPES = (
    *("linear_grows", "linear_grows_as_in_the_paper"),
    *("softmax_grows", "softmax_grows_as_in_the_paper", "written_grows"),
    *("more_sensitive", "relatively_more_sensitive"),
)


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.3), ((1, 1), (1, 1)))
    linear(axes[0], dataset)
    softmax(axes[1], dataset, KINDS, "softmax attention", "size over that in training")
    softmax(axes[2], dataset, CHANGES, "W_V clipped, softmax", "change over that in training")
    judged_panel.rows(axes[3], *evidence(claims, dataset), (-1, 1.5), SLOPES)
    axes[3].set(title="what is judged", xlabel="d log size / d log n")
    return figure


def _relative(ax, factors, runs, words, color, marker):
    """Runs [R, factors] of a size, over its value in training; the end's height."""
    own = runs / runs[:, [int(np.argmin(np.abs(np.log(factors))))]]
    style.mean_points(ax, factors, own, color=color, marker=marker, lw=0.8, capsize=2)
    return {words: own.mean(0)[-1]}


def _log_axes(ax, factors):
    from matplotlib.ticker import NullLocator

    style.log_axes(ax, x=True, y=True, ticks=factors)
    low, high = ax.get_ylim()
    ticks = [tick for tick in (0.25, 0.5, 0.7, 1, 1.5, 2, 4) if low <= tick <= high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.yaxis.set_minor_locator(NullLocator())


def linear(ax, dataset):
    """|G_t| of a linear stack by layer."""
    factors, ends = dataset.factor.values, {}
    colors = [LINEAR, SOFTMAX, GREEN, PURPLE]
    for layer, color in zip(dataset.linear_layer.values, colors, strict=False):
        runs = dataset.linear.sel(linear_layer=layer).transpose("linear_run", "factor").values
        ends |= _relative(ax, factors, runs, f"layer {layer}", color, "o")
    _log_axes(ax, factors)
    ax.set(xlabel="shots / shots in training", ylabel="|G_t| over that in training")
    ax.set_title("linear stack, by layer")
    end_labels(ax, ends, colors[: len(ends)])


def softmax(ax, dataset, kinds, title, ylabel):
    factors, ends = dataset.factor.values, {}
    for kind, (words, color, marker) in kinds.items():
        sizes = np.exp(np.log(dataset["size"].sel(kind=kind)).mean("layer"))
        runs = sizes.transpose("run", "factor").values
        ends |= _relative(ax, factors, runs, words, color, marker)
    _log_axes(ax, factors)
    ax.set(xlabel="shots / shots in training", ylabel=ylabel, title=title)
    end_labels(ax, ends, [color for _, color, _ in kinds.values()])


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    mean = {name: float(np.mean(values)) for name, values in samples.items()}
    task, linear = (spec_of(config, name).task for name in (ATTENTION, STACK))
    lost = dataset.sizes["linear_started"] - dataset.sizes["linear_run"]
    return (
        f"With n demonstrations trained updates change as n^{mean['linear_grows']:.2g} (linear) "
        f"and n^{mean['softmax_grows']:.2g} (softmax); without the division by n or Z, as in A2, "
        f"as n^{mean['linear_grows_as_in_the_paper']:.2g} and "
        f"n^{mean['softmax_grows_as_in_the_paper']:.2g}. "
        f"a to c: medians over {config.prompts} prompts, over those at the shots of "
        f"training, means of runs with {level()} intervals; b, c: |ΔW| in the feature space of the "
        f"kernel, Z its normaliser, |ΔW φ| what it adds to the query; c: W_V of a layer clipped at "
        f"rate {config.rate:g}. d: {judged_panel.KEY}. {dataset.sizes['run']} models of softmax "
        f"attention (d = {task.d}, n = {max(task.lengths)}), whose excess risk is "
        f"{claims.over_ridge(dataset):.3g} times that of ridge regression, and "
        f"{dataset.sizes['linear_run']} linear stacks (d = {linear.d}, n = {max(linear.lengths)}; "
        f"{lost} diverged and left out)."
    )
