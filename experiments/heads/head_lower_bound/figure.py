"""What searches with too few heads miss, and what it costs."""

import numpy as np

from experiments.heads.head_lower_bound.claims import share_at_the_least
from experiments.heads.head_lower_bound.config import FLOOR
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.theory.wishart import rotation_invariant_bound


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(10.0, 3.8, (1, 3))
    plot_sizes(axes[0], dataset)
    plot_images(axes[1], dataset, config)
    plot_risk(axes[2], dataset, config)
    return figure


def plot_sizes(ax, dataset):
    """Searches for all d covariates, against the number of heads."""
    for i, d in enumerate(dataset.d.values):
        heads = dataset.heads.values[dataset.heads.values <= d]
        ends = dataset.residual.sel(d=d, heads=heads).values
        plot_search(ax, heads, ends, ends.min(1), f"d = {d}", i)
        ax.plot([0, d], [d, 0], ":", color="grey", lw=1, zorder=0)
        zero = f"{ends[-1].min():.0e}"
        ax.annotate(zero, (d, 0), (0, -5), textcoords="offset points", ha="center", va="top")
    most = dataset.sizes["heads"]
    ax.set(xlabel="heads H", ylabel="residual", xticks=dataset.heads.values)
    ax.set(xlim=(0.7, most + 0.4), ylim=(-0.1 * most, most))
    ax.set_title("to preprocess d covariates")
    ax.legend(loc="upper right")


def plot_images(ax, dataset, config):
    """Images of each rank; of the full one only the searches of the first panel."""
    ranks = dataset["rank"].values
    for i, rank in enumerate(ranks):
        x = dataset.image_heads.values + 0.07 * (i - len(ranks) / 2)
        image = dataset.sel(rank=rank)
        plot_search(ax, x, image.of_image.values, image.built.values.max(1), f"r = {rank}", i)
    if config.image_d in config.sizes:
        x = np.arange(1, config.image_d + 1)
        ends = dataset.residual.sel(d=config.image_d, heads=x).values
        plot_search(ax, x, ends, ends.min(1), f"r = d = {config.image_d}, as in a", len(ranks))
    ax.axhspan(FLOOR / 10, config.reached, color="grey", alpha=0.12, lw=0)
    style.log_axes(ax, y=True)
    ax.set(xlabel="heads H", ylabel="residual", xticks=np.arange(1, config.image_d + 1))
    ax.set(ylim=(FLOOR / 10, 1e6), yticks=10.0 ** np.arange(-18, 1, 3))
    ax.set_title(f"for an image of rank r of d = {config.image_d}")
    ax.legend(loc="upper center", ncols=2)


def plot_risk(ax, dataset, config):
    """Descent on the features of H heads, and the least risk of rules that ignore directions."""
    used = dataset.used.values
    style.band(ax, used, dataset.risk.values, "features of H heads")
    ridge = rotation_invariant_bound(config.n, config.d, config.noise_std**2)
    ax.axhline(ridge, color=style.BLACK, lw=1.2, label="best rotation-invariant rule")
    style.log_axes(ax, x=True, ticks=used)
    ax.set(xlabel="heads H of the first layer", ylabel="excess risk of descent", ylim=(0, None))
    ax.set_title(f"what fewer than d = {config.d} cost")
    ax.legend(loc="upper right")


def plot_search(ax, x, ends, least, label, i):  # [heads], [heads, restarts], [heads]
    """Where each search ends, as dots, and a line through the least residuals."""
    color, marker = style.COLOURS[i], style.MARKERS[i]
    ends, least = np.maximum(ends, FLOOR), np.maximum(least, FLOOR)
    ax.plot(x, ends, ".", color=color, alpha=0.35, markersize=6, markeredgewidth=0)
    ax.plot(x, least, marker=marker, color=color, label=label)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    image_fewer = float(dataset.of_image.where(dataset.image_heads < dataset["rank"]).min())
    return (
        "As many as there are covariates: with H < d heads one layer misses d - H of them. a: the "
        f"best of {config.restarts} random searches (line; dots: all of them) misses one "
        f"coordinate for each missing head (dotted; at least {share_at_the_least(dataset):.0%} of "
        f"the searches end there). b: of {config.image_d} covariates an image of rank r needs r "
        f"heads (line: written down; dots: {config.image_restarts} searches, which miss "
        f"{image_fewer:.3g} or more with fewer heads; shaded: counts as zero, drawn at {FLOOR:.0e} "
        f"if less). c: d = {config.d}, {config.sparsity} of w's coordinates not 0, n = {config.n}, "
        f"noise {config.noise_std:g}; step size and number of steps chosen on other prompts. "
        f"Median of {config.runs} runs and the middle 80 %; {style.missing(dataset.risk)} left out "
        "as not finite."
    )
