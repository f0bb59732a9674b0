"""Condition numbers and stable ranks by layer, and beside what clipping does."""

import numpy as np

from experiments.clipping.condition_numbers.claims import rank_correlation, samples, tilt
from experiments.clipping.condition_numbers.config import MODULES, statements
from experiments.clipping.diverged_runs import left_out
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.statistics import mean_interval

MEASURES = {"condition": "condition number", "stable_rank": "stable rank"}
JUDGED = {
    "deep_is_larger": "deep less shallow",
    "last_is_largest": "last less others",
    "random_is_level": "deep less shallow,\nbefore training",
    "training_tilts": "deep less shallow,\nby training",
    "training_raises": "all, by training",
    "stable_rank_falls": "stable rank,\nby training",
}


def plot(dataset):
    config, judged = results.config_of(dataset), samples(dataset)
    figure, axes = style.figure(6.75, 8.0, (3, 2))
    for ax, (name, label) in zip(axes, MEASURES.items(), strict=False):
        plot_layers(ax, dataset, name, label)
    style.line(axes[0], [], [], "before training", "grey", ":")
    axes[0].legend(ncols=2)
    style.log_axes(axes[0], y=True)
    axes[0].set_ylim(top=100 * axes[0].get_ylim()[1])
    plot_tilt(axes[2], dataset, config)
    judged_panel.rows(axes[3], statements(config), judged, JUDGED, (-0.45, 0.45))
    axes[3].set(xlabel="log₁₀ of a ratio", title="judged, mean over matrices")
    for ax, (name, label) in zip(axes[4:], MEASURES.items(), strict=True):
        plot_tolerance(ax, dataset, name, label, config)
        correlations = judged[f"{name}_tells"]
        low, high = mean_interval(correlations)
        sign = "≤" if name == "condition" else "≥"
        words = f"ρ = {correlations.mean():.2f} [{low:.2f}, {high:.2f}] ({sign} 0)"
        ax.set_title(words, loc="right")
    return figure


def plot_layers(ax, dataset, name, label):
    """One measure of every matrix by its layer, after training and before."""
    layers = dataset.layer.values
    for i, (module, color, marker) in enumerate(
        zip(MODULES, style.COLOURS, style.MARKERS, strict=True)
    ):
        x, values = layers + 0.07 * (i - (len(MODULES) - 1) / 2), dataset[name].sel(module=module)
        runs = values.isel(steps=-1).transpose("run", "layer")
        style.band(ax, x, runs, module, color, marker)
        style.line(ax, layers, values.isel(steps=0).median("run"), color=color, style=":")
    ax.set(xlabel="layer", ylabel=label, xticks=layers)
    ax.set_title(f"{label} after training")


def plot_tilt(ax, dataset, config):
    """Deep less shallow, by module."""
    runs = tilt(np.log10(dataset.condition), config.ends).transpose("run", "module", "steps")
    for i, (when, color) in enumerate((("before training", "grey"), ("after", style.BLACK))):
        x = np.arange(len(MODULES)) + 0.2 * i - 0.1
        look = dict(fmt=style.MARKERS[i], color=color, capsize=2)
        style.mean_points(ax, x, runs.isel(steps=-i), when, **look)
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    ax.set_xticks(np.arange(len(MODULES)), list(MODULES), rotation=20)
    ax.set(ylabel="log₁₀ condition number")
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


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    larger = judged["deep_is_larger"]
    factor, low, high = (10**x for x in (larger.mean(), *mean_interval(larger)))
    condition, stable = (judged[id].mean() for id in ("condition_tells", "stable_rank_tells"))
    lost = sum(style.missing(dataset[name].isel(steps=-1)) for name in MEASURES)
    early = rank_correlation(np.log10(dataset.condition.isel(steps=0)), dataset.ratio).mean()
    depth = rank_correlation(dataset.layer.broadcast_like(dataset.ratio), dataset.ratio).mean()
    far = float(np.exp(np.log(dataset.unclipped / dataset.ridge).mean()))
    return (
        f"Our models' deep layers have {factor:.2f} ({low:.2f} to {high:.2f}) times the condition "
        f"number of shallow ones; with the harm by clipping it correlates by {condition:.2f}, the "
        f"stable rank by {stable:.2f}. "
        f"{dataset.sizes['run']} runs ({left_out(dataset)} diverged and left out), whose risk is "
        f"{far:.2g} times that of ridge regression: they are far from the best predictor. a, b: "
        f"median and middle 80 % of the runs; dotted: the same matrices before training. c: mean "
        f"and its 95 % interval. d: {judged_panel.KEY}. "
        f"e, f: one matrix clipped at {config.rate:g}, the "
        f"number at a point is its layer, colours as in a; medians over runs. ρ: Spearman's "
        f"correlation of the two over the layers of a module and run, averaged; it is "
        f"{early:.2f} with condition numbers before training and {depth:.2f} with depth. {lost} "
        f"numbers left out as not finite. d = {config.d}, width {config.width}; the heads of a "
        f"projection are one matrix."
    )
