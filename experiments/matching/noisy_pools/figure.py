"""What each rule leaves of a random subset's error, which outliers it picks, what is judged."""

import numpy as np

from experiments.matching import rows
from experiments.matching.learners import EXACT, learners
from experiments.matching.noisy_pools import claims
from experiments.matching.noisy_pools.claims import logs, over_random, picked
from experiments.matching.noisy_pools.config import KINDS, OUTLIERS, RULES
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

SPAN = (0.004, 20.0)  # of errors relative to random subsets
REST = ("gain_kept", "whole_pool", "outliers")  # families that are judged beside the gain
SHARES = (0.0, 6.0)  # of outliers among the chosen over their share in the pool


def plot(dataset):
    config = results.config_of(dataset)
    count = len(learners(config))
    figure, axes = style.stacked(6.75, (2.5, 2.0 + 0.7 * count), ((3, 3, 3), (1, 1)))
    for ax, learner in zip(axes, first_and_last_learner(config), strict=False):
        errors(ax, dataset, learner)
    outliers(axes[2], dataset)
    name_kinds(axes[0])
    judged(axes[3], dataset, ("gain",), (0.1, 2.0), (0.1, 0.2, 0.5, 1, 2))
    axes[3].set(xlabel="error, matching / random", title="judged: gain")
    judged(axes[4], dataset, REST, (0.2, 10.0), (0.2, 0.5, 1, 2, 5))
    axes[4].set(xlabel="ratio", title="judged: the rest")
    handles, names = axes[2].get_legend_handles_labels()
    figure.legend(handles, names, ncols=len(names), loc="outside upper center")
    return figure


def first_and_last_learner(config) -> list[str]:
    """Descent, and the last of the trained models or ridge."""
    return [EXACT[0], learners(config)[-1]]


def errors(ax, dataset, learner):
    """A row for each kind of pool, in it a point for each rule."""
    places = np.arange(len(KINDS))
    for i, rule in enumerate(RULES[:-1]):
        runs = over_random(dataset, learner, rule).values
        middle, ends = np.exp(runs.mean(0)), np.exp(style.mean_ends(runs))
        y = places + 0.2 * (i - 1)
        rows.points(ax, y, middle, ends, SPAN, label=rule, **style.METHOD[rule])
    stripes(ax)
    ax.axvline(1, color="grey", lw=0.8)
    style.log_axes(ax, x=True, ticks=(0.01, 0.1, 1, 10))
    ax.set(xlim=SPAN, xlabel="error relative to random", title=learner)


def outliers(ax, dataset):
    for i, rule in enumerate(RULES[:-1]):
        runs = picked(dataset, rule).sel(kind=list(OUTLIERS)).values
        y = 1 + np.arange(len(OUTLIERS)) + 0.2 * (i - 1)
        rows.means(ax, y, runs, SHARES, label=rule, **style.METHOD[rule])
    stripes(ax)
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlim=SHARES, xlabel="their share / the pool's", title="outliers chosen")


def stripes(ax):
    for place in range(0, len(KINDS), 2):
        ax.axhspan(place - 0.5, place + 0.5, color="grey", alpha=0.08, lw=0)
    ax.set(ylim=(len(KINDS) - 0.5, -0.5), yticks=range(len(KINDS)), yticklabels=[])


def name_kinds(ax):
    ax.set_yticks(range(len(KINDS)), KINDS)


def judged(ax, dataset, families, span, ticks):
    style.log_axes(ax, x=True, ticks=ticks)
    statements, samples = evidence(claims, dataset)
    ids = [cell.id for cell in cells_of(statements) if cell.family in families]
    judged_panel.rows(ax, statements, samples, span, ids)
    ax.axvline(1, color="grey", lw=0.8)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    gained = np.exp(over_random(dataset, EXACT[0]).mean("run"))
    shares = picked(dataset).mean("run")
    left = ", ".join(f"{float(gained.sel(kind=kind)):.2g} ({kind})" for kind in KINDS)
    taken = ", ".join(f"{float(shares.sel(kind=kind)):.2g} ({kind})" for kind in OUTLIERS)
    few, many = config.flips
    missing = style.missing(dataset.outliers) + style.missing(logs(dataset).sel(learner="descent"))
    return (
        f"Matching leaves descent of a random subset's error {left}. Of the outliers' share it "
        f"picks {taken} times. a, b: geometric mean of {config.runs} runs, {config.pools} pools "
        f"each, n = {', '.join(map(str, config.sizes))} of {config.m}, {level()} intervals; c: "
        f"flipped labels, or the {100 * config.outliers:g} % with the longest covariates or "
        f"largest noise. Flipped: {100 * few:g} % and {100 * many:g} %; heavy tails: Student's t, "
        f"{config.tail:g} degrees of freedom; noise {config.noise_std:g}, d = {config.d}. "
        f"Trained attention (n = {config.model_size}) has seen Gaussian covariates alone. "
        f"d, e: {judged_panel.KEY}. {missing} numbers left out as not finite."
    )
