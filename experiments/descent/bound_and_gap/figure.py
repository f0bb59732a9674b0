"""A2's bound and the gap along each axis of the grid, over all of it, and how well one ranks the
other."""

import numpy as np

from experiments.descent.bound_and_gap.claims import least_bounds, samples
from experiments.descent.bound_and_gap.config import GRID, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

WORDS = {"noise": "noise", "shots": "n", "depth": "layers"}
PARTS = {"noisy_bound": "bound", "noise_cost": "cost"}
RANKS = {
    "ranks": "whole grid",
    "ranks_at_equal_n": "equal n",
    "better_than_counting": "less 1/√n",
}


def plot(dataset):
    figure, axes = style.figure(6.75, 4.9, (2, 3))
    for ax, axis in zip(axes, WORDS, strict=False):
        along(ax, dataset, axis)
    axes[2].legend(loc="center right")
    over_c(axes[3], dataset)
    whole_grid(axes[4], dataset)
    correlations(axes[5], dataset)
    return figure


def along(ax, dataset, axis):
    config, x = results.config_of(dataset), dataset[axis].values
    for i, (label, values) in enumerate(series(dataset, axis).items()):
        beside = x + 0.02 * (i - 1) * x[-1]
        style.band(ax, beside, values, label, style.COLOURS[i], style.MARKERS[i])
    ax.axhline(config.largest_loss, color="grey", lw=0.8, ls="--")
    ax.set_xticks(x)
    style.log_axes(ax, y=True)
    ax.set(xlabel=WORDS[axis], ylabel="bound, gap")
    fixed = [name for name in GRID if name != axis]
    at = cut(dataset, axis)
    ax.set_title(", ".join(f"{WORDS[name]} {at[name].item():g}" for name in fixed), loc="right")


def cut(dataset, axis=None):
    """The middle of every axis of the grid but one."""
    return dataset.isel({name: dataset.sizes[name] // 2 for name in GRID if name != axis})


def series(dataset, axis) -> dict[str, np.ndarray]:  # {label: [G, x]}
    """What one axis shows; on a logarithmic axis what is not positive has no place."""
    curves = {
        "least bound": least_bounds(dataset),
        "bound, c the spread": dataset.spread_bound,
        "gap": dataset.gap,
    }
    rows = {
        label: cut(each, axis).transpose("group", axis).values for label, each in curves.items()
    }
    return {label: np.where(values > 0, values, np.nan) for label, values in rows.items()}


def over_c(ax, dataset):
    """What the least bound is the least of, at the middle of the grid."""
    at, c = cut(dataset), dataset.update_noise.values
    for (name, label), look in zip(PARTS.items(), ("--", ":"), strict=True):
        style.line(ax, c, at[name].mean("group").values, label, style.COLOURS[0], look)
    total = (at.noisy_bound + at.noise_cost).transpose("group", "update_noise").values
    style.mean_band(ax, c, total, "both", style.COLOURS[0], None)
    gap = np.abs(at.noisy_gap).transpose("group", "update_noise").values
    style.mean_band(ax, c, gap, "|gap|", style.COLOURS[2], None)
    ax.axhline(results.config_of(dataset).largest_loss, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True, y=True)
    ax.set(xlabel="c, the noise of an update", ylabel="bound, gap", ylim=(1e-5, None))
    ax.set_title("its middle")
    ax.legend(loc="lower left")


def whole_grid(ax, dataset):
    least = least_bounds(dataset).mean("group")
    gaps = dataset.gap.mean("group")
    for i, n in enumerate(dataset.shots.values):
        for j in range(dataset.sizes["noise"]):
            here = {"shots": i, "noise": j}
            look = {"color": style.COLOURS[i % 6], "label": None if j else f"n = {n:g}"}
            x, y = gaps.isel(here).values, least.isel(here).values
            ax.plot(np.where(x > 0, x, np.nan), y, style.MARKERS[j % 6], **look)
    ax.axhline(results.config_of(dataset).largest_loss, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True)
    ax.set(xlabel="gap, mean of the tasks", ylabel="least bound", ylim=(0, None))
    ax.set_title("the whole grid")
    ax.legend()


def correlations(ax, dataset):
    """The judged rows that are correlations, at the best c and at the spread."""
    rows = statements(results.config_of(dataset))
    labels = {
        f"{name}{suffix}": f"{words}{c}"
        for name, words in RANKS.items()
        for suffix, c in (("", ""), ("_by_spread", ", spread"))
    }
    judged_panel.rows(ax, rows, samples(dataset), labels, (-1, 1))
    ax.set(xlabel="rank correlation with the gap")
    ax.set_title("judged")


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    least = least_bounds(dataset).mean("group")
    ranks, equal, less = (judged[name].mean() for name in RANKS)
    spread = (judged[f"{name}_by_spread"].mean() for name in RANKS)
    free = (dataset.bound - np.abs(dataset.gap)).mean("group").min(GRID)
    broken = dataset.update_noise.values[free.values < 0]
    below = f"from c = {broken.min():g} on" if len(broken) else "at no c of d"
    over = float((dataset.noisy_bound < np.abs(dataset.noisy_gap)).mean())
    lost = sum(style.missing(v) for axis in WORDS for v in series(dataset, axis).values())
    return (
        f"At its best over c A2's bound is {float(least.min()):.2g} to {float(least.max()):.2g}, "
        f"where losses end at {config.largest_loss:g}; its rank correlation with the gap is "
        f"{ranks:.2f}, that of 1/√n {ranks - less:.2f}, and at equal n {equal:.2f}. "
        f"C = cI, and c is free: descent has no noise of its own. Least bound: over c, the bound "
        f"with that noise and what the noise changes in the two risks (d: cost), c chosen on the "
        f"other tasks. Without that cost the bound is below the gap somewhere on the grid {below}, "
        f"and falls to 0 as c grows. c the spread: as large as the spread of the updates over "
        f"prompts, of which Assumption 1 speaks; its correlations are "
        f"{', '.join(f'{x:.2f}' for x in spread)} (f). {config.groups} tasks of {config.prompts} "
        f"prompts; {over:.1%} of the single gaps with noise, estimates of expectations, exceed "
        f"their bound. a to c: median and the middle 80 %; d to f: mean, d and f with its 95 % "
        f"interval. f: {judged_panel.KEY}. Dashes: the largest loss. {lost} gaps left "
        f"out as not positive. e: circles, squares, ... are growing label noise. Weights come from "
        f"pretraining, and 1/n with small n is loose."
    )
