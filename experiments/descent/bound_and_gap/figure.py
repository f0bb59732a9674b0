"""A2's bound beside the gap over the whole grid and along its axes, and how well one ranks the
other."""

from experiments.descent.bound_and_gap import claims
from experiments.descent.bound_and_gap.claims import least_bounds
from experiments.descent.bound_and_gap.config import GRID
from experiments.descent.bound_and_gap.panels import axis_curves, cut, noise_curves, whole_grid
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

RANKS = ("ranks", "ranks_at_equal_n", "better_than_counting")
SPREAD = ("ranks_by_spread", "ranks_at_equal_n_by_spread", "better_than_counting_by_spread")
MARGINS = ("above", "above_with_noise", "says_something", "says_something_by_spread")


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.7, 2.5), ((1, 1), (1, 1, 1)))
    whole_grid(axes[0], dataset)
    judged_panel.rows(axes[1], *evidence(claims, dataset), (-1, 1), (*RANKS, *SPREAD))
    axes[1].set(xlabel="rank correlation with the gap", title="what is judged: ranks")
    for ax, axis in zip(axes[2:], ("shots", "noise", "depth"), strict=True):
        axis_curves(ax, dataset, axis)
    return figure


def appendix(dataset):
    """What the least bound is the least of, and the other rows that are judged."""
    figure, axes = style.figure(6.75, 2.6, (1, 2), first="f")
    noise_curves(axes[0], dataset)
    judged_panel.rows(axes[1], *evidence(claims, dataset), (-35, 15), MARGINS)
    axes[1].set(xlabel="margin, in units of the loss", title="what is judged: margins")
    return figure


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    least = least_bounds(dataset).mean("group")
    ranks, equal, less = (samples[name].mean() for name in RANKS)
    free = (dataset.bound - abs(dataset.gap)).mean("group").min(GRID)
    broken = dataset.update_noise.values[free.values < 0]
    below = f"from c = {broken.min():g} on" if len(broken) else "at no c of f"
    over = float((dataset.noisy_bound < abs(dataset.noisy_gap)).mean())
    low = sum(int((cut(dataset.gap, axis) <= 0).sum()) for axis in GRID)
    return (
        f"At its best over c A2's bound is {float(least.min()):.2g} to {float(least.max()):.2g}, "
        f"where losses end at {config.largest_loss:g}; its rank correlation with the gap is "
        f"{ranks:.2f}, that of 1/√n {ranks - less:.2f}, and at equal n {equal:.2f}. "
        f"a: means over tasks, larger marks for more label noise. c to e: medians and the middle "
        f"80 %; {low} gaps are not positive. C = cI, and c is free: descent has no noise of its "
        f"own. Least bound: over c, the bound with that noise and what the noise changes in the "
        f"two risks (f: cost), c chosen on the other tasks. Without that cost the bound is below "
        f"the gap somewhere {below}. Spread: that of the updates over "
        f"prompts, of which Assumption 1 speaks. {config.groups} tasks of {config.prompts} "
        f"prompts; {over:.1%} of the single gaps with noise, estimates of expectations, exceed "
        f"their bound. b: {judged_panel.KEY}. Appendix: f, means with {level()} intervals, and "
        f"g, the other judged rows. Weights come from pretraining, and 1/n with small n is loose."
    )
