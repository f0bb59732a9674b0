"""The figure of `condition_numbers`, drawn from its result alone."""

import numpy as np

from experiments.clipping.condition_numbers.claims import rank_correlation, trend
from experiments.clipping.condition_numbers.config import MODULES
from experiments.clipping.diverged_runs import left_out
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import mean_interval

MEASURES = {"condition": "condition number", "stable_rank": "stable rank"}


def plot_layers(axes, dataset):
    """Condition numbers and stable ranks by module; how many numbers are left out."""
    layers, lost = dataset.layer.values, 0
    for i, (module, color, marker) in enumerate(
        zip(MODULES, style.COLOURS, style.MARKERS, strict=True)
    ):
        x, there = layers + 0.07 * (i - (len(MODULES) - 1) / 2), dataset.sel(module=module)
        for ax, (name, label) in zip(axes, MEASURES.items(), strict=True):
            runs = there[name].isel(steps=-1).transpose("run", "layer")
            lost += style.band(ax, x, runs, module, color, marker)
            style.line(ax, layers, there[name].isel(steps=0).median("run"), color=color, style=":")
            ax.set(xlabel="layer", ylabel=label, xticks=layers)
            ax.set_title(f"{label} after training")
    style.line(axes[0], [], [], "before training", "grey", ":")
    axes[0].legend(ncols=2)
    style.log_axes(axes[0], y=True)
    axes[0].set_ylim(top=30 * axes[0].get_ylim()[1])
    return lost


def plot_tolerance(ax, dataset, name, settings):
    """The risk ratio of every matrix against a measure of it, medians over runs."""
    for module, color, marker in zip(MODULES, style.COLOURS, style.MARKERS, strict=True):
        there = dataset.isel(steps=-1).sel(module=module).median("run")
        ax.plot(there[name], there.ratio, marker, color=color)
        points = zip(there.layer.values, there[name].values, there.ratio.values, strict=True)
        for layer, x, y in points:
            ax.annotate(f"{layer}", (x, y), (3, 2), textcoords="offset points", fontsize=6)
    style.log_axes(ax, x=name == "condition", y=True)
    ticks = [tick for tick in (1, 1.5, 2, 5, 10, 20, 50) if tick <= 1.5 * ax.get_ylim()[1]]
    ax.set_yticks(ticks, [f"{tick}" for tick in ticks])
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel=MEASURES[name], ylabel=f"risk after clipping {settings.rate:g} / before")
    ax.set_title(f"{MEASURES[name]} and tolerance")


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(11.0, 6.4, (2, 3))
    lost = plot_layers(axes[:2], dataset)
    logs = np.log10(dataset.condition)
    for layer, color, marker in zip(
        dataset.layer.values, style.COLOURS, style.MARKERS, strict=False
    ):
        runs = logs.mean("module").sel(layer=layer).transpose("run", "steps")
        style.mean_band(axes[2], dataset.steps.values, runs, f"layer {layer}", color, marker)
    axes[2].set(xlabel="training steps", ylabel="log₁₀ condition number, mean over modules")
    axes[2].set_title("during training")
    tilt = trend(logs, settings).transpose("run", "module", "steps")
    for i, (when, color) in enumerate((("before training", "grey"), ("after", style.BLACK))):
        runs = tilt.isel(steps=-i).values  # [R, M]
        low, high = np.transpose([mean_interval(column) for column in runs.T])
        middle, x = runs.mean(0), np.arange(len(MODULES)) + 0.2 * i - 0.1
        bars = np.nan_to_num([middle - low, high - middle], posinf=0)
        axes[3].errorbar(x, middle, bars, fmt=style.MARKERS[i], color=color, label=when, capsize=2)
    axes[3].axhline(0, color=style.BLACK, lw=0.8, ls="--")
    axes[3].set_xticks(np.arange(len(MODULES)), list(MODULES))
    axes[3].set(ylabel="log₁₀ condition number, deep less shallow")
    axes[3].set_title(f"last {settings.ends} layers less first {settings.ends}")
    axes[2].legend(ncols=2)
    axes[3].legend()
    told = []
    for ax, name in zip(axes[4:], MEASURES, strict=True):
        plot_tolerance(ax, dataset, name, settings)
        final = dataset.isel(steps=-1)
        told.append(f"{rank_correlation(final[name], final.ratio).mean():.2f}")
    style.caption(
        drawn,
        f"(a), (b): median of {dataset.sizes['run']} runs ({left_out(dataset)} diverged "
        f"and left out) and the middle 80 % of them; dotted: the "
        f"same matrices before training. (c), (d): mean and its 95 % interval. (e), (f): one "
        f"matrix clipped at {settings.rate:g}, the number at a point is its layer, colours as in "
        f"(a); medians over runs. Spearman's correlation over layers, within a module and run, of "
        f"the risk ratio with the condition number {told[0]}, with the stable rank {told[1]}. "
        f"{lost} numbers left out as not finite. d = {settings.d}, width {settings.width}; the "
        "heads of a projection are one matrix.",
    )
    return drawn
