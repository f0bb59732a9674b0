"""Gaps against the number of matched checkpoints: three kinds of models, and chosen subsets."""

import numpy as np

from experiments.matching.matching_is_exact import claims
from experiments.matching.matching_is_exact.config import PATHS
from experiments.matching.matching_is_exact.panels import (
    chosen_subsets,
    descents,
    down_to_rounding,
    linear_attention,
    softmax,
    twins,
)
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

# The judged rows, from the top.
ROWS = ("softmax_random", "softmax_random_nearer", "softmax_trained", "softmax_trained_nearer")
ROWS += ("subset", "whitened_subset", "whitened_nearer", "whitened_softmax")
ROWS += ("whitened_over_scaled", "whitened_over_scaled_softmax")


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.7, 2.7), ((1, 1, 1), (4, 4, 5)))
    proxy, own = (dataset.linear.sel(path=path) for path in PATHS)
    descents(axes[0], proxy.sel(square="free"), config)
    axes[0].legend(loc="center left", bbox_to_anchor=(0, 0.55), handlelength=1)
    axes[0].set_title("descent")
    linear_attention(axes[1], proxy, config)
    softmax(axes[2], dataset)
    descents(axes[3], own.sel(square="free"), config)
    axes[3].set_title("its own path")
    for ax in axes[:4]:
        twins(ax, dataset, config)
        down_to_rounding(ax, config)
    for ax in axes[1:3]:
        ax.set_ylabel("")
    chosen_subsets(axes[4], dataset)
    judged(axes[5], dataset)
    return figure


def appendix(dataset):
    """Softmax on a scale of its own."""
    config = results.config_of(dataset)
    figure, axes = style.figure(3.25, 2.7, first="g")
    softmax(axes[0], dataset)
    twins(axes[0], dataset, config)
    axes[0].set(ylim=(0.03, 3))
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    softmax = dataset.softmax.sel(matched=config.d + 1).median("pair")
    far = (dataset.error / dataset.bayes).median("pair").sel(weights="trained")
    left = {name: left_of_random(part) for name, part in claims.over_random(dataset).items()}
    names = ("linear", "softmax", "subset", "whitened", "scaled", "one_layer", "bound")
    missing = sum(style.missing(dataset[name]) for name in names)
    return (
        "d + 1 checkpoints equal the pool for descent of any depth, and for all linear attention "
        "if the mean of y² agrees. Softmax still differs by "
        f"{float(softmax.min()):.2g} to {float(softmax.max()):.2g}. "
        'What is exact is a theorem (docs/theory, "Matched gradients predict alike"). a to d: sets '
        "with the pool's mean gradients at some checkpoints of a trained proxy, otherwise drawn "
        f"anew (d = {config.d}; dashes: d + 1). c: trained on isotropic prompts without noise, at "
        f"{float(far):.2g} times the Bayes rule's error here; d: matched along the descent itself, "
        f"L checkpoints suffice for L layers. e: {config.n} of {config.m}, chosen to match, come "
        f"near only (0: random); of a random subset's gap plain, scaled and whitened matching of "
        f"d + 1 checkpoints leave {left['linear']} ({max(config.depths)} layers), "
        f"{left['softmax']} (trained softmax). f: {judged_panel.KEY}. Median and middle 80 % of "
        f"{config.runs} runs, of {config.trained} in c; {missing} numbers left out as not finite. "
        "Appendix: g: c on a scale of its own."
    )


def left_of_random(ratios) -> str:  # [run or pair, 3]
    values = [f"{value:.2g}" for value in np.median(ratios, axis=0)]
    return f"{', '.join(values[:-1])} and {values[-1]}"


def judged(ax, dataset):
    style.log_axes(ax, x=True, ticks=(0.02, 0.1, 0.5, 2))
    judged_panel.rows(ax, *evidence(claims, dataset), (0.01, 2.0), ROWS)
    ax.set(xlabel="gap, or ratio of gaps", title="what is judged")
