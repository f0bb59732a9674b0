"""The figure of `head_lower_bound`, drawn from its result alone."""

import numpy as np

from experiments.heads.head_lower_bound.compute import searched
from experiments.heads.head_lower_bound.config import FLOOR
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.theory import risk


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(10.0, 3.8, (1, 3))
    plot_sizes(axes[0], dataset)
    plot_images(axes[1], dataset, settings)
    lost = plot_risk(axes[2], dataset, settings)
    image_fewer = float(dataset.of_image.where(dataset.image_heads < dataset["rank"]).min())
    style.caption(
        drawn,
        f"a: the best of {settings.restarts} random searches (line; dots: all of them) misses "
        f"d - H, one coordinate for each missing head (dotted; at least "
        f"{at_the_least(dataset):.0%} of the searches end there). b: of {settings.image_d} "
        f"covariates an image of rank r "
        f"needs r heads (line: written down; dots: {settings.image_restarts} searches, which miss "
        f"{image_fewer:.3g} or more with fewer heads; shaded: counts as zero, drawn at {FLOOR:.0e} "
        f"if less). c: d = {settings.d}, {settings.sparsity} of w's coordinates not 0, "
        f"n = {settings.n}, noise {settings.noise_std:g}; step size and number of steps chosen on "
        f"other prompts. Median of {settings.runs} runs and the middle 80 %; {lost} left out as "
        f"not finite.",
    )
    return drawn


def plot_sizes(ax, dataset):
    for i, d in enumerate(dataset.d.values):
        heads = dataset.heads.values[dataset.heads.values <= d]
        ends = dataset.residual.sel(d=d, heads=heads).values
        searched(ax, heads, ends, ends.min(1), f"d = {d}", i)
        ax.plot([0, d], [d, 0], ":", color="grey", lw=1, zorder=0)
        zero = f"{ends[-1].min():.0e}"
        ax.annotate(zero, (d, 0), (0, -5), textcoords="offset points", ha="center", va="top")
    most = dataset.sizes["heads"]
    ax.set(xlabel="heads H", ylabel="residual", xticks=dataset.heads.values)
    ax.set(xlim=(0.7, most + 0.4), ylim=(-0.1 * most, most))
    ax.set_title("to preprocess d covariates")
    ax.legend(loc="upper right")


def plot_images(ax, dataset, settings):
    """Images of each rank; of the full one only the searches of the first panel."""
    ranks = dataset["rank"].values
    for i, rank in enumerate(ranks):
        x = dataset.image_heads.values + 0.07 * (i - len(ranks) / 2)
        there = dataset.sel(rank=rank)
        searched(ax, x, there.of_image.values, there.built.values.max(1), f"r = {rank}", i)
    if settings.image_d in settings.sizes:
        x = np.arange(1, settings.image_d + 1)
        ends = dataset.residual.sel(d=settings.image_d, heads=x).values
        searched(ax, x, ends, ends.min(1), f"r = d = {settings.image_d}, as in a", len(ranks))
    ax.axhspan(FLOOR / 10, settings.reached, color="grey", alpha=0.12, lw=0)
    style.log_axes(ax, y=True)
    ax.set(xlabel="heads H", ylabel="residual", xticks=np.arange(1, settings.image_d + 1))
    ax.set(ylim=(FLOOR / 10, 1e6), yticks=10.0 ** np.arange(-18, 1, 3))
    ax.set_title(f"for an image of rank r of d = {settings.image_d}")
    ax.legend(loc="upper center", ncols=2)


def plot_risk(ax, dataset, settings):
    used = dataset.used.values
    lost = style.band(ax, used, dataset.risk.values, "features of H heads")
    bound = risk.rotation_invariant_bound(settings.n, settings.d, settings.noise_std**2)
    ax.axhline(bound, color=style.BLACK, lw=1.2, label="best rotation-invariant rule")
    style.log_axes(ax, x=True, ticks=used)
    ax.set(xlabel="heads H of the first layer", ylabel="excess risk of descent", ylim=(0, None))
    ax.set_title(f"what fewer than d = {settings.d} cost")
    ax.legend(loc="upper right")
    return lost


def at_the_least(dataset):
    """The smallest share, over d and H <= d, of restarts that end at the least residual."""
    settings = results.config_of(dataset)
    ends = dataset.residual.values.reshape(-1, settings.restarts)
    ends = ends[np.isfinite(ends[:, 0])]
    return np.mean(ends <= ends.min(1, keepdims=True) + settings.off, axis=1).min()
