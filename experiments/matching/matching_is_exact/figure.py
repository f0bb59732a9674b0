"""Gaps against the number of matched checkpoints: descent, other models, and chosen subsets."""

import numpy as np

from experiments.matching.matching_is_exact.claims import random_subsets, samples
from experiments.matching.matching_is_exact.config import PATHS, SQUARES, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

FLOOR = np.finfo(float).eps / 10  # an exact zero has no logarithm
ROUNDING = 1e-10


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 8.4, (3, 2))
    for ax, path in zip(axes[:2], PATHS, strict=True):
        descents(ax, dataset.linear.sel(path=path, square="free"), config)
    axes[0].set_title("checkpoints of a trained proxy")
    axes[1].set_title("checkpoints of the own descent")
    other_models(axes[2], dataset)
    softmax(axes[3], dataset)
    for ax in axes[:4]:
        ax.axvline(config.d + 1, color="grey", lw=0.8, ls="--")
        ax.set(xlabel="matched checkpoints", ylabel="gap / size of predictions")
        ax.set(xticks=dataset.matched.values)
        style.log_axes(ax, y=True)
    for ax in axes[:3]:
        ax.axhspan(FLOOR, ROUNDING, color="grey", alpha=0.12, lw=0)
        ax.set(ylim=(FLOOR / 2, 30))
        ax.legend(loc="center left", bbox_to_anchor=(0, 0.42))
    chosen_subsets(axes[4], dataset)
    judged_rows(axes[5], dataset)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    softmax = dataset.softmax.sel(matched=config.d + 1).median("pair")
    far = (dataset.error / dataset.bayes).median("pair").sel(weights="trained")
    names = ("linear", "softmax", "subset", "one_layer", "bound")
    missing = sum(style.missing(dataset[name]) for name in names)
    return (
        "d + 1 checkpoints equal the pool for descent of any depth, and for all linear attention "
        "if the mean of y² agrees; softmax still differs by "
        f"{float(softmax.min()):.2g} to {float(softmax.max()):.2g}. "
        'What is exact is a theorem (docs/theory, "Matched gradients predict alike"). '
        "Sets with the pool's mean gradients at some checkpoints, otherwise drawn anew "
        f"(d = {config.d}, dashed: d + 1; shaded: rounding). Descent of L layers cannot tell them "
        "from the pool from d + 1 checkpoints on (a), or from L of its own path (b); other weights "
        "(c); softmax (d), trained on isotropic prompts without noise: on these pools it has "
        f"{float(far):.2g} times the Bayes rule's error. e: {config.n} chosen from {config.m} "
        "match only nearly, and random ones (none) not at all. Median and middle 80 % of "
        f"{config.runs} runs, of {config.trained} in d; {missing} numbers left out as not finite. "
        f"f: {judged_panel.KEY}."
    )


def descents(ax, gaps, config):
    for i, depth in enumerate(config.depths):
        runs = gaps.sel(model=f"descent, {depth}").transpose("run", "matched")
        label, x = f"{depth} layer{'s' * (depth > 1)}", gaps.matched.values + 0.08 * (i - 1.5)
        style.band(ax, x, np.maximum(runs, FLOOR), label, style.COLOURS[i], style.MARKERS[i])


def other_models(ax, dataset):
    depth = max(results.config_of(dataset).random_depths)
    random = dataset.linear.sel(model=f"random, {depth}", path="proxy")
    for i, square in enumerate(SQUARES):
        runs = np.maximum(random.sel(square=square).transpose("run", "matched"), FLOOR)
        x = dataset.matched.values + 0.08 * (i - 0.5)
        style.band(ax, x, runs, f"y² {square}", style.COLOURS[i], style.MARKERS[i])
    ax.set_title("random linear attention")


def softmax(ax, dataset):
    for i, weights in enumerate(dataset.weights.values):
        runs = dataset.softmax.sel(weights=weights).transpose("pair", "matched")
        x = dataset.matched.values + 0.08 * (i - 0.5)
        style.band(ax, x, runs, f"{weights} weights", style.COLOURS[i], style.MARKERS[i])
    ax.set_title("softmax, y² matched")
    ax.set(ylim=(0.03, 3))
    ax.legend(loc="lower left")


def chosen_subsets(ax, dataset):
    """Subsets of the pool, matched as well as they can be."""
    config = results.config_of(dataset)
    most, counts = config.most, np.arange(config.most + 1)
    gaps = {
        f"{max(config.depths)} layers": dataset.subset,
        "one layer": dataset.one_layer,
        "bound for one layer": dataset.bound,
    }
    for i, (label, values) in enumerate(gaps.items()):
        values = values.transpose("run", "pick")
        random = random_subsets(config, values).values[:, None]
        runs = np.concatenate([random, values.values[:, :most]], axis=1)
        style.band(ax, counts + 0.08 * (i - 1), runs, label, style.COLOURS[i], style.MARKERS[i])
    ax.axvline(config.d + 1, color="grey", lw=0.8, ls="--")
    ax.set_xticks(counts, ["none", *map(str, counts[1:])])
    ax.set(xlabel="checkpoints used", ylabel="gap / size of predictions")
    ax.set_title("subsets chosen from the pool")
    style.log_axes(ax, y=True)
    ax.legend()


def judged_rows(ax, dataset):
    config = results.config_of(dataset)
    names = {}
    for weights in dataset.weights.values:
        names[f"softmax_{weights}"] = f"softmax, {weights}: gap"
        names[f"softmax_{weights}_nearer"] = "over that unmatched"
    names["subset"] = "subset / random one"
    style.log_axes(ax, x=True, ticks=(0.02, 0.05, 0.1, 0.2, 0.5, 1))
    judged_panel.rows(ax, statements(config), samples(dataset), names, (0.01, 2.0))
    ax.set(xlabel="judged median")
    ax.set_title("what is judged")
