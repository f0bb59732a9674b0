"""Errors after chosen subsets over those after random ones, and rank correlations of targets."""

import numpy as np

from experiments.matching import rows
from experiments.matching.matching_transfer import claims
from experiments.matching.matching_transfer.config import RULES, task_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

LOOKS = {
    "prefix": style.METHOD["matching, prefix"],
    "deep prefix": style.METHOD["matching, prefix"] | {"mfc": "white"},
    "moments": style.METHOD["moments"],
    "linear proxy": style.METHOD["matching"],
    "half proxy": style.METHOD["matching"] | {"marker": "v"},
    "its start": style.METHOD["matching"] | {"mfc": "white"},
    "mismatched": style.METHOD["mismatching"],
}
SPAN = (0.02, 100.0)  # of the errors that lie in the panel
# The judged rows, from the top: ratios of errors, and rank correlations.
RATIOS = ("prefix", "proxy", "prefix_on_average", "proxy_on_average", "mismatching", "literal")
RATIOS += ("half_on_average", "half_loss", "deep", "deep_loss")
RANKS = ("rank_all", "rank_random", "rank_gap", "rank_gap_deep")


def plot(dataset):
    figure, axes = style.stacked(6.75, (3.7, 2.3), ((1,), (3, 2)))
    errors(axes[0], dataset)
    judged_ratios(axes[1], dataset)
    judged_correlations(axes[2], dataset)
    return figure


def appendix(dataset):
    """Whether models rank subsets alike."""
    figure, axes = style.figure(5.5, 3.6, first="d")
    rank_correlations(axes[0], dataset)
    return figure


def caption(dataset) -> str:
    config, transfer = results.config_of(dataset), claims.numbers(dataset)
    task, ratio = task_of(config), transfer.ratios
    medians = ratio.sel(target=transfer.larger).median("run")
    spans = [
        f"{float(medians.sel(rule=rule).min()):.2g} to {float(medians.sel(rule=rule).max()):.2g}"
        for rule in ("prefix", "linear proxy")
    ]
    far = transfer.bayes_ratios().sel(target=transfer.larger).values
    far = ", ".join(f"{ratio:.2g}" for ratio in far)
    return (
        f"Subsets that match gradients of a one-layer prefix leave larger models {spans[0]} of a "
        f"random subset's error. Those of a linear proxy leave {spans[1]}. "
        f"a shows medians and middle 80 % of {config.runs} runs, {max(task.lengths)} of {config.m} "
        f"demonstrations. After random subsets the larger models, from the top, have {far} times "
        f"the Bayes rule's error. The deep prefix has {min(config.descents)} layers, and the half "
        f"proxy sees half of the covariates. {style.missing(ratio)} "
        "ratios were not finite."
    )


def errors(ax, dataset):
    """A row for each model that is taught, in it a point for each way to choose."""
    ratio = claims.numbers(dataset).ratios
    places = np.arange(ratio.sizes["target"])
    for i, (rule, look) in enumerate(LOOKS.items()):
        y = places + 0.12 * (i - (len(RULES) - 1) / 2)
        rows.medians(ax, y, ratio.sel(rule=rule).values, SPAN, label=rule, **look)
    for place in places[::2]:
        ax.axhspan(place - 0.5, place + 0.5, color="grey", alpha=0.08, lw=0)
    ax.axvline(1, color="grey", lw=0.8)
    style.log_axes(ax, x=True, ticks=(0.1, 1, 10, 100))
    ax.set_yticks(places, dataset.target.values)
    ax.set(xlim=SPAN, ylim=(len(places) - 0.5, -0.5), xlabel="error relative to a random subset")
    ax.set_title("after subsets chosen on a small model")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4)


def rank_correlations(ax, dataset):
    """Random subsets above the diagonal, all below."""
    rank = dataset.spearman.transpose("subsets", "run", "target", "other").median("run")
    both = np.tril(rank.sel(subsets="all")) + np.triu(rank.sel(subsets="random"), 1)
    names, places = dataset.target.values, np.arange(len(both))
    ax.imshow(both, vmin=-1, vmax=1, cmap="RdBu_r", aspect="auto")
    for i, j in np.ndindex(both.shape):
        ink = "white" if abs(both[i, j]) > 0.7 else "black"
        ax.text(j, i, f"{both[i, j]:.2f}", ha="center", va="center", fontsize=7, color=ink)
    ax.set_xticks(places, names, rotation=30, ha="right", rotation_mode="anchor")
    ax.set_yticks(places, names)
    ax.set_title("rank correlation of models: random subsets above, all below")


def judged_ratios(ax, dataset):
    style.log_axes(ax, x=True, ticks=(0.1, 0.2, 0.5, 1, 2, 5))
    judged_panel.rows(ax, *evidence(claims, dataset), (0.1, 6.0), RATIOS)
    ax.set(xlabel="ratio of errors", title="judged: errors")


def judged_correlations(ax, dataset):
    judged_panel.rows(ax, *evidence(claims, dataset), (0.0, 1.0), RANKS)
    ax.set(xlabel="with one layer, worst model", title="judged: ranks")
