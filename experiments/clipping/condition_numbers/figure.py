"""Condition numbers and stable ranks by layer, during training, and beside what clipping does."""

import numpy as np

from experiments.clipping.condition_numbers.claims import samples, tilt
from experiments.clipping.condition_numbers.config import MODULES
from experiments.clipping.diverged_runs import left_out
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import mean_interval

MEASURES = {"condition": "condition number", "stable_rank": "stable rank"}


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(11.0, 6.0, (2, 3))
    for ax, (name, label) in zip(axes, MEASURES.items(), strict=False):
        plot_layers(ax, dataset, name, label)
    style.line(axes[0], [], [], "before training", "grey", ":")
    axes[0].legend(ncols=2)
    style.log_axes(axes[0], y=True)
    axes[0].set_ylim(top=30 * axes[0].get_ylim()[1])
    plot_training(axes[2], dataset)
    plot_tilt(axes[3], dataset, config)
    for ax, (name, label) in zip(axes[4:], MEASURES.items(), strict=True):
        plot_tolerance(ax, dataset, name, label, config)
    return figure


def plot_layers(ax, dataset, name, label):
    """One measure of every matrix by its layer, after training and before."""
    layers = dataset.layer.values
    looks = zip(MODULES, style.COLOURS, style.MARKERS, strict=True)
    for i, (module, color, marker) in enumerate(looks):
        x, values = layers + 0.07 * (i - (len(MODULES) - 1) / 2), dataset[name].sel(module=module)
        runs = values.isel(steps=-1).transpose("run", "layer")
        style.band(ax, x, runs, module, color, marker)
        style.line(ax, layers, values.isel(steps=0).median("run"), color=color, style=":")
    ax.set(xlabel="layer", ylabel=label, xticks=layers)
    ax.set_title(f"{label} after training")


def plot_training(ax, dataset):
    """The condition number of each layer at every checkpoint."""
    logs = np.log10(dataset.condition).mean("module")
    looks = zip(dataset.layer.values, style.COLOURS, style.MARKERS, strict=False)
    for layer, color, marker in looks:
        runs = logs.sel(layer=layer).transpose("run", "steps")
        style.mean_band(ax, dataset.steps.values, runs, f"layer {layer}", color, marker)
    ax.set(xlabel="training steps", ylabel="log₁₀ condition number, mean over modules")
    ax.set_title("during training")
    ax.legend(ncols=2)


def plot_tilt(ax, dataset, config):
    """Deep less shallow, by module."""
    runs = tilt(np.log10(dataset.condition), config.ends).transpose("run", "module", "steps")
    for i, (when, color) in enumerate((("before training", "grey"), ("after", style.BLACK))):
        x = np.arange(len(MODULES)) + 0.2 * i - 0.1
        look = dict(fmt=style.MARKERS[i], color=color, capsize=2)
        style.mean_points(ax, x, runs.isel(steps=-i), when, **look)
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    ax.set_xticks(np.arange(len(MODULES)), list(MODULES))
    ax.set(ylabel="log₁₀ condition number, deep less shallow")
    ax.set_title(f"last {config.ends} layers less first {config.ends}")
    ax.legend()


def plot_tolerance(ax, dataset, name, label, config):
    """The risk ratio of every matrix against a measure of it, medians over runs."""
    for module, color, marker in zip(MODULES, style.COLOURS, style.MARKERS, strict=True):
        middle = dataset.isel(steps=-1).sel(module=module).median("run")
        ax.plot(middle[name], middle.ratio, marker, color=color)
        points = zip(middle.layer.values, middle[name].values, middle.ratio.values, strict=True)
        for layer, x, y in points:
            ax.annotate(f"{layer}", (x, y), (3, 2), textcoords="offset points", fontsize=6)
    style.log_axes(ax, x=name == "condition", y=True)
    ticks = [tick for tick in (1, 1.5, 2, 5, 10, 20, 50) if tick <= 1.5 * ax.get_ylim()[1]]
    ax.set_yticks(ticks, [f"{tick}" for tick in ticks])
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel=label, ylabel=f"risk after clipping {config.rate:g} / before")
    ax.set_title(f"{label} and tolerance")


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    larger = judged["deep_is_larger"]
    factor, low, high = (10**x for x in (larger.mean(), *mean_interval(larger)))
    condition, stable = (judged[id].mean() for id in ("condition_tells", "stable_rank_tells"))
    lost = sum(style.missing(dataset[name].isel(steps=-1)) for name in MEASURES)
    return (
        f"Deep layers have {factor:.2f} ({low:.2f} to {high:.2f}) times the condition number of "
        f"shallow ones; with the harm by clipping it correlates by {condition:.2f}, the stable "
        f"rank by {stable:.2f}. "
        f"Median of {dataset.sizes['run']} runs ({left_out(dataset)} diverged and left out) and "
        f"the middle 80 % of them (a, b); dotted: the same matrices before training. c, d: mean "
        f"and its 95 % interval. e, f: one matrix clipped at {config.rate:g}, the number at a "
        f"point is its layer, colours as in a; medians over runs. The correlations are "
        f"Spearman's, over layers within a module and run, with the risk after clipping over that "
        f"before. {lost} numbers left out as not finite. d = {config.d}, width {config.width}; "
        f"the heads of a projection are one matrix."
    )
