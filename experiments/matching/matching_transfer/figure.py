"""The figure of `matching_transfer`, drawn from its result alone."""

import numpy as np

from experiments.matching.matching_transfer.claims import ratios
from experiments.matching.matching_transfer.transferring import RULES
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.6, 4.2, (1, 2))
    ratio, targets, lost = ratios(dataset), list(dataset.target.values), 0
    places = np.arange(len(targets))
    for i, rule in enumerate(RULES):
        runs = ratio.sel(rule=rule).transpose("run", "target")
        spot = places + 0.13 * (i - (len(RULES) - 1) / 2)
        lost += style.band(axes[0], spot, runs, rule, style.COLOURS[i], style.MARKERS[i])
    top, off = 1000.0, ratio.sel(rule="mismatched").median("run")
    for place in places[off.values > top]:
        axes[0].annotate("↑", (place + 0.26, top), ha="center", va="top", color=style.COLOURS[4])
    axes[0].axhline(1, color="grey", lw=0.8)
    axes[0].set_ylim(0.02, top)
    style.log_axes(axes[0], y=True)
    axes[0].set_xticks(places, targets, rotation=40, ha="right", rotation_mode="anchor")
    axes[0].set(ylabel="error over that of the median random subset")
    axes[0].set_title("below 1 the choice transfers")
    axes[0].legend(loc="upper right")
    ax, rank = axes[1], dataset.spearman.median("run")
    both = np.tril(rank.sel(subsets="all")) + np.triu(rank.sel(subsets="random"), 1)
    image = ax.imshow(both, vmin=-1, vmax=1, cmap="RdBu_r")
    for i, j in np.ndindex(both.shape):
        ink = "white" if abs(both[i, j]) > 0.7 else "black"
        ax.text(j, i, f"{both[i, j]:.2f}", ha="center", va="center", fontsize=6, color=ink)
    ax.set_xticks(places, targets, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks(places, targets)
    ax.set_title("rank correlation")
    drawn.colorbar(image, ax=ax, shrink=0.8)
    finished = int((dataset.status != "diverged").sum())
    spans = {
        rule: [float(end(ratio.sel(rule=rule).median("run"))) for end in (np.min, np.max)]
        for rule in ("prefix", "linear proxy")
    }
    said = ", ".join(f"{low:.2f} to {high:.2f} ({rule})" for rule, (low, high) in spans.items())
    style.caption(
        drawn,
        f"Left: {settings.n} of {settings.m} noisy demonstrations, chosen to match the pool's "
        "gradients on a small model, used on others: the error is that of the median random subset "
        f"times {said}. Median of {settings.runs} runs and the middle 80 % of them; {lost} left "
        f"out as not finite; {finished} of {dataset.status.size} trainings finished; arrows: off "
        "the top. Right: do subsets rank alike? Spearman's correlation in the median run, random "
        "subsets above the diagonal, all below. "
        f"d = {settings.d}, noise {settings.noise_std:g}.",
    )
    return drawn
