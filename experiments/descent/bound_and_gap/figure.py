"""A2's bound and the gap along each axis of the grid, and both over the whole grid."""

import numpy as np

from experiments.descent.bound_and_gap.claims import rank_correlations, samples
from experiments.descent.bound_and_gap.config import GRID
from lsa_lab import results
from lsa_lab.harness import style

WORDS = {"depth": "layers", "shots": "n", "noise": "noise", "update_noise": "c, chosen freely"}
LABELS = {
    "bound": "bound, g = 0",
    "centred_bound": "bound, g the mean",
    "noisy_gap": "gap, updates with noise",
    "gap": "gap",
}


def plot(dataset):
    figure, axes = style.figure(9.0, 5.2, (2, 3))
    for ax, axis in zip(axes, WORDS, strict=False):
        along(ax, dataset, axis)
    whole_grid(axes[4], dataset)
    axes[5].legend(*axes[0].get_legend_handles_labels(), loc="center left")
    axes[5].set_title("", loc="left")
    axes[5].set_axis_off()
    return figure


def along(ax, dataset, axis):
    config, x = results.config_of(dataset), dataset[axis].values
    curves = series(dataset, axis)
    for i, (label, values) in enumerate(curves.items()):
        beside = x + 0.02 * (i - 1.5) * x[-1] if len(curves) > 1 else x
        style.band(ax, beside, values, label, style.COLOURS[i], style.MARKERS[i])
    if axis == "update_noise":
        gap = cut(dataset, axis).gap.median()
        style.line(ax, x, np.full(len(x), gap), None, style.COLOURS[3])
        ax.axvline(config.update_noise, color="grey", lw=0.8, ls=":")
    ax.axhline(config.largest_loss, color="grey", lw=0.8, ls="--", label="largest loss")
    ax.set_xticks(x)
    style.log_axes(ax, x=axis == "update_noise", y=True)
    ax.set(xlabel=WORDS[axis], ylabel="bound, gap")
    fixed = [name for name in GRID if name != axis]
    at = cut(dataset, axis)
    ax.set_title(", ".join(f"{WORDS[name]} {at[name].item():g}" for name in fixed))


def cut(dataset, axis):
    """The middle of every axis of the grid but one."""
    return dataset.isel({name: dataset.sizes[name] // 2 for name in GRID if name != axis})


def series(dataset, axis) -> dict[str, np.ndarray]:  # {label: [G, x]}
    """What one axis of figures shows; on a logarithmic axis what is not positive has no place."""
    names = ["other_bound"] if axis == "update_noise" else list(LABELS)
    here, labels = cut(dataset, axis), LABELS.values()
    curves = (here[name].transpose("group", axis).values for name in names)
    return {
        label: np.where(values > 0, values, np.nan)
        for label, values in zip(labels, curves, strict=False)
    }


def whole_grid(ax, dataset):
    for i, n in enumerate(dataset.shots.values):
        for j in range(dataset.sizes["noise"]):
            medians = dataset.sel(shots=n).isel(noise=j).median("group")
            look = {"color": style.COLOURS[i % 6], "label": None if j else f"n = {n:g}"}
            ax.plot(medians.gap, medians.bound, style.MARKERS[j % 6], **look)
    style.log_axes(ax, x=True)
    ax.set(xlabel="gap, median of the tasks", ylabel="bound, g = 0")
    ax.set_title("the whole grid")
    ax.legend()


def caption(dataset) -> str:
    config, measured = results.config_of(dataset), samples(dataset)
    above = measured["above"].mean()
    largest = config.largest_loss - measured["says_something"].mean()
    overall, equal_n, count = (values.mean() for values in rank_correlations(dataset))
    margins = (dataset.other_bound - np.abs(dataset.gap)).mean("group").min(GRID)
    broken = [f"{c:g}" for c in dataset.update_noise.values[margins < 0]]
    missing = sum(style.missing(v) for axis in WORDS for v in series(dataset, axis).values())
    return (
        f"At c = {config.update_noise:g} the bound is {above:.2g} or more above the gap and as "
        f"large as {largest:.2g}, where losses end at {config.largest_loss:g}; its rank "
        f"correlation with the gap is {overall:.2f}, {equal_n:.2f} at equal n. That of 1/√n alone "
        f"is {count:.2f}. A2's bound with C = cI (d: c dotted), beside the gap of clipped squared "
        f"errors. Somewhere on the grid the bound is below the gap at c = "
        f"{', '.join(broken) or 'none'} of d. Caveats: descent is deterministic given the prompt, "
        f"so the noise C is added for the proof, c is free, and without it the bound is infinite; "
        f"weights come from pretraining, and 1/n with small n makes it loose. Median of "
        f"{config.groups} tasks of {config.prompts} prompts and the middle 80 % of them; {missing} "
        f"left out as not positive. e: circles, squares, ... are growing label noise."
    )
