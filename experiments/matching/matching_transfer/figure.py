"""Errors after chosen subsets over those after random ones, and rank correlations of targets."""

import numpy as np

from experiments.matching.matching_transfer.claims import larger, over_bayes, ratios, samples
from experiments.matching.matching_transfer.config import RULES, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style


def plot(dataset):
    figure, axes = style.figure(6.75, 6.6, (2, 2))
    errors(axes[0], dataset)
    rank_correlations(axes[1], dataset)
    judged_ratios(axes[2], dataset)
    judged_correlations(axes[3], dataset)
    return figure


def caption(dataset) -> str:
    config, ratio = results.config_of(dataset), ratios(dataset)
    medians = ratio.sel(target=larger(dataset)).median("run")
    spans = [
        f"{float(medians.sel(rule=rule).min()):.2g} to {float(medians.sel(rule=rule).max()):.2g}"
        for rule in ("prefix", "linear proxy")
    ]
    finished = int((dataset.status != "diverged").sum())
    far = over_bayes(dataset).sel(target=larger(dataset)).values
    return (
        f"Subsets that match gradients of a one-layer prefix leave larger models {spans[0]} of a "
        f"random subset's error, those of a linear proxy {spans[1]}. "
        f"a: {config.n} of {config.m} noisy demonstrations, chosen on a small model, used on "
        f"others. Median of {config.runs} runs and the middle 80 % of them; "
        f"{style.missing(ratio)} left out as not finite; {finished} of {dataset.status.size} "
        "trainings finished; arrows: off the top. After random subsets the targets, from left to "
        "right, have "
        + ", ".join(f"{ratio:.2g}" for ratio in far)
        + " times the Bayes rule's median "
        "error: some are far from trained. b: do subsets rank alike? Spearman's "
        "correlation in the median run, random subsets above the diagonal, all below. "
        f"d = {config.d}, noise {config.noise_std:g}. c, d: {judged_panel.KEY}."
    )


def errors(ax, dataset):
    ratio, top = ratios(dataset), 1000.0
    places = np.arange(ratio.sizes["target"])
    for i, rule in enumerate(RULES):
        x = places + 0.13 * (i - (len(RULES) - 1) / 2)
        style.band(ax, x, ratio.sel(rule=rule), rule, style.COLOURS[i], style.MARKERS[i])
    off = ratio.sel(rule="mismatched").median("run").values > top
    for place in places[off]:
        ax.annotate("↑", (place + 0.26, top), ha="center", va="top", color=style.COLOURS[4])
    ax.axhline(1, color="grey", lw=0.8)
    ax.set_ylim(0.02, top)
    style.log_axes(ax, y=True)
    name_targets(ax, dataset)
    ax.set(ylabel="error / median random subset's")
    ax.set_title("error after the choice")
    ax.legend(loc="upper right", fontsize=6, bbox_to_anchor=(1, 0.97), ncols=2, columnspacing=0.5)


def rank_correlations(ax, dataset):
    """Random subsets above the diagonal, all below."""
    rank = dataset.spearman.transpose("subsets", "run", "target", "other").median("run")
    both = np.tril(rank.sel(subsets="all")) + np.triu(rank.sel(subsets="random"), 1)
    ax.imshow(both, vmin=-1, vmax=1, cmap="RdBu_r")
    for i, j in np.ndindex(both.shape):
        ink = "white" if abs(both[i, j]) > 0.7 else "black"
        ax.text(j, i, f"{both[i, j]:.2f}", ha="center", va="center", fontsize=5, color=ink)
    name_targets(ax, dataset)
    ax.set_yticks(np.arange(len(both)), dataset.target.values)
    ax.set_title("rank correlation")


def judged_ratios(ax, dataset):
    names = {
        "proxy": "proxy, worst target",
        "prefix": "prefix, worst target",
        "proxy_on_average": "proxy, on average",
        "prefix_on_average": "prefix, on average",
        "mismatching": "mismatched, least harm",
        "literal": "prefix / proxy, worst",
    }
    style.log_axes(ax, x=True, ticks=(0.1, 0.2, 0.5, 1, 2, 5))
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), names, (0.1, 6.0))
    ax.set(xlabel="judged ratio of errors")


def judged_correlations(ax, dataset):
    names = {"rank_all": "all subsets", "rank_random": "random ones"}
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), names, (-0.2, 1.0))
    ax.set(xlabel="judged rank correlation, worst target")


def name_targets(ax, dataset):
    names = dataset.target.values
    ax.set_xticks(np.arange(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
