"""Are the deep layers of a trained transformer worse conditioned, and do they bear more for it?"""

from functools import partial

import jax
import numpy as np

from experiments import style
from experiments.configs.condition_numbers import TIERS, Config
from experiments.parts import clipped, stacks
from lsa_lab import results
from lsa_lab.analyses import clipping
from lsa_lab.claims import about_the_mean, mean_interval

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o"}
MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}
MEASURES = {"condition": "condition number", "stable_rank": "stable rank"}


def compute(config: Config, *, progress=None, checkpoints=None):
    """The heads of a projection are one matrix, as they are in A2."""
    import xarray as xr

    stack, watched, status = clipped.trained(config, "condition_numbers", progress)
    found = clipping.matrices(watched, list(MODULES.values()))  # each [R', looks+1, L, p, q]
    measures = (clipping.condition_number, clipping.stable_rank)
    conditions, ranks = (
        np.stack([measure(found[name]) for name in MODULES.values()], axis=-1)
        for measure in measures
    )
    draw = jax.jit(partial(stacks.draw, law=stacks.task(stack), size=config.prompts))
    clipped_alone = clipping.curve(
        clipped.squared_error(stack),
        clipped.final(watched),
        draw(jax.random.fold_in(jax.random.key(config.seed), 2)),
        modules=list(MODULES.values()),
        rates=(config.rate,),
    )
    unclipped = clipped_alone.unclipped.mean[:, 0, None, None]
    ratio = 1 + clipped_alone.change.mean[:, 0, :, :, 0] / unclipped
    axes = ("run", "steps", "layer", "module")
    return xr.Dataset(
        {
            "condition": (axes, conditions),
            "stable_rank": (axes, ranks),
            "ratio": (("run", "layer", "module"), ratio),
            "status": ("trained", status),
        },
        {
            "steps": np.arange(config.looks + 1) * (config.steps // config.looks),
            "layer": np.arange(config.depth) + 1,
            "module": list(MODULES),
        },
    )


def trend(logs, settings):  # (run, layer, ...) -> (run, ...)
    """Deep less shallow."""
    shallow, deep = clipped.shallow_and_deep(logs, settings.ends)
    return deep - shallow


def rank_correlation(left, right):  # (run, layer, module) twice -> [R]
    """Spearman's over the layers of a run, averaged over modules; there are no ties."""

    def places(values):
        order = values.transpose("run", "module", "layer").values
        return order.argsort(-1).argsort(-1) - (order.shape[-1] - 1) / 2

    a, b = places(left), places(right)
    return ((a * b).sum(-1) / (a**2).sum(-1)).mean(-1)


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
    settings = results.settings(dataset)
    drawn, axes = style.figure(11.0, 6.4, (2, 3))
    lost = plot_layers(axes[:2], dataset)
    logs = np.log10(dataset.condition)
    for layer, color, marker in zip(
        dataset.layer.values, style.COLOURS, style.MARKERS, strict=False
    ):
        runs = logs.mean("module").sel(layer=layer).transpose("run", "steps")
        clipped.mean_band(axes[2], dataset.steps.values, runs, f"layer {layer}", color, marker)
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
        f"(a), (b): median of {clipped.left_out(dataset)} and the middle 80 % of them; dotted: the "
        f"same matrices before training. (c), (d): mean and its 95 % interval. (e), (f): one "
        f"matrix clipped at {settings.rate:g}, the number at a point is its layer, colours as in "
        f"(a); medians over runs. Spearman's correlation over layers, within a module and run, of "
        f"the risk ratio with the condition number {told[0]}, with the stable rank {told[1]}. "
        f"{lost} numbers left out as not finite. d = {settings.d}, width {settings.width}; the "
        "heads of a projection are one matrix.",
    )
    return drawn


def claims(dataset):
    settings = results.settings(dataset)
    final, first = dataset.isel(steps=-1), dataset.isel(steps=0)
    after, before = (np.log10(when.condition) for when in (final, first))
    mean = "mean over runs, modules and layers of log10 of the condition number,"
    ends = f"the last {settings.ends} layers less the first {settings.ends},"
    spearman = "mean over runs and modules of Spearman's correlation over layers of the"
    clipping_ratio = f"with the risk after clipping {settings.rate:g} over that before,"
    deeper, by_chance = (trend(some, settings).mean("module") for some in (after, before))
    last = after.isel(layer=-1) - after.isel(layer=slice(-1)).mean("layer")
    shrunk = np.log10(final.stable_rank / first.stable_rank).mean(("layer", "module"))
    seen, derived = "A2 (2406.03768), figure 3", "derived here"
    rows = (
        ("deep_is_larger", seen, "Deep layers have larger condition numbers than shallow ones",
         f"{mean} {ends} >= 0", deeper, {"at_least": 0.0}),
        ("last_is_largest", seen, "The last layer has a larger condition number than the others",
         f"{mean} the last layer less the mean of the others, >= 0", last.mean("module"),
         {"at_least": 0.0}),
        ("random_is_level", derived, "Random weights are as well conditioned deep as shallow",
         f"{mean} {ends} before training, within ± {settings.same:g}", by_chance,
         {"at_least": -settings.same, "at_most": settings.same}),
        ("training_tilts", derived, "It is training that makes deep layers worse conditioned",
         f"{mean} {ends} after training less before, >= 0", deeper - by_chance, {"at_least": 0.0}),
        ("training_raises", derived, "Training raises condition numbers",
         f"{mean} after training less before, >= 0", (after - before).mean(("layer", "module")),
         {"at_least": 0.0}),
        ("stable_rank_falls", derived, "Training lowers stable ranks",
         "mean over runs, modules and layers of log10 of the stable rank, after training less "
         "before, <= 0", shrunk, {"at_most": 0.0}),
        ("condition_tells", "A2 (2406.03768), section 3.4", "Of the layers that with the larger "
         "condition number bears clipping better", f"{spearman} condition number {clipping_ratio} "
         "<= 0", rank_correlation(after, final.ratio), {"at_most": 0.0}),
        ("stable_rank_tells", derived, "Of the layers that with the smaller stable rank bears "
         "clipping better", f"{spearman} stable rank {clipping_ratio} >= 0",
         rank_correlation(final.stable_rank, final.ratio), {"at_least": 0.0}),
    )  # fmt: skip
    return [
        about_the_mean(f"condition_numbers.{name}", source, statement, criterion, samples, **bound)
        for name, source, statement, criterion, samples, bound in rows
    ]
