"""What each rule leaves of a random subset's error, which outliers it picks, what is judged."""

import numpy as np

from experiments.matching import rows
from experiments.matching.learners import EXACT, learners, tag
from experiments.matching.noisy_pools.claims import logs, over_random, picked, samples
from experiments.matching.noisy_pools.config import KINDS, OUTLIERS, RULES, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

SPAN = (0.004, 20.0)  # of errors relative to random subsets
SHARES = (0.0, 6.0)  # of outliers among the chosen over their share in the pool


def plot(dataset):
    config = results.config_of(dataset)
    count = len(learners(config))
    figure, axes = style.stacked(6.75, (2.5, 2.0 + 0.7 * count), ((3, 3, 3), (1, 1)))
    for ax, learner in zip(axes, shown_learners(config), strict=False):
        errors(ax, dataset, learner)
    outliers(axes[2], dataset)
    name_kinds(axes[0])
    judged_errors(axes[3], dataset)
    judged_rest(axes[4], dataset)
    handles, names = axes[2].get_legend_handles_labels()
    figure.legend(handles, names, ncols=len(names), loc="outside upper center")
    return figure


def shown_learners(config) -> list[str]:
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


def judged_errors(ax, dataset):
    config = results.config_of(dataset)
    labels = {
        f"{tag(learner)}_{tag(kind)}": f"{learner}, {kind}"
        for learner in learners(config)
        for kind in KINDS
    }
    judged(ax, dataset, labels, (0.1, 2.0), (0.1, 0.2, 0.5, 1, 2))
    ax.set(xlabel="error, matching / random", title="judged: gain")


def judged_rest(ax, dataset):
    config = results.config_of(dataset)
    labels = {
        f"{tag(learner)}_{tag(kind)}_kept": f"{learner}, {kind} / clean"
        for learner in learners(config)
        for kind in OUTLIERS
    }
    labels |= {f"{tag(kind)}_pool": f"matching / pool, {kind}" for kind in KINDS}
    labels |= {f"{tag(kind)}_outliers": f"outliers, {kind}" for kind in OUTLIERS}
    judged(ax, dataset, labels, (0.2, 10.0), (0.2, 0.5, 1, 2, 5))
    ax.set(xlabel="ratio", title="judged: the rest")


def judged(ax, dataset, labels, span, ticks):
    style.log_axes(ax, x=True, ticks=ticks)
    judged_rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, judged_rows, samples(dataset), labels, span)
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
        f"each, n = {', '.join(map(str, config.sizes))} of {config.m}, 95 % intervals; c: flipped "
        f"labels, or the {100 * config.outliers:g} % with the longest covariates or largest noise. "
        f"Flipped: {100 * few:g} % and {100 * many:g} %; heavy tails: Student's t, {config.tail:g} "
        f"degrees of freedom; noise {config.noise_std:g}, d = {config.d}. "
        f"Trained attention (n = {config.model_size}) has seen Gaussian covariates alone. "
        f"d, e: {judged_panel.KEY}. {missing} numbers left out as not finite."
    )
