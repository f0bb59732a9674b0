"""Condition numbers by layer, and what clipping does."""

from experiments.clipping.condition_numbers import claims
from experiments.clipping.condition_numbers.config import MODULES
from experiments.clipping.drawing import quality
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

HARMFUL = 1.5  # a risk ratio from which on a point is named
LOOKS = dict(zip(MODULES, zip(style.COLOURS, style.MARKERS, strict=True), strict=True))


def plot(dataset):
    return style.panels(dataset, 2.9, plot_layers, plot_tolerance)


def plot_layers(ax, dataset):
    """The condition number of every matrix by its layer, after training and before."""
    layers, ends = dataset.layer.values, {}
    before = dataset.condition.isel(steps=0).median("run")
    for i, (module, (color, marker)) in enumerate(LOOKS.items()):
        x = layers + 0.07 * (i - (len(MODULES) - 1) / 2)
        runs = dataset.condition.sel(module=module).isel(steps=-1).transpose("run", "layer")
        style.band(ax, x, runs, None, color, marker)
        style.line(ax, layers, before.sel(module=module), color="grey", style=":")
        ends[module] = float(runs.median("run")[-1])
    style.log_axes(ax, y=True)
    ax.set_ylim(bottom=0.4 * ax.get_ylim()[0])
    direct_label(ax, layers[0], float(before[0].min()), "before training", "dimgrey", (1, -4))
    ax.set(xlabel="layer", xticks=layers, ylabel="condition number")
    ax.set_title("Training raises condition numbers")
    end_labels(ax, ends, [color for color, _ in LOOKS.values()])


def plot_tolerance(ax, dataset):
    """The risk ratio of every matrix against its condition number, medians over runs; those that
    clipping harms are named by their layers."""
    for module, (color, marker) in LOOKS.items():
        middle = dataset.isel(steps=-1).sel(module=module).median("run")
        ax.plot(
            middle.condition, middle.ratio, marker, color=color, ms=4.5, alpha=0.7, label=module
        )
        for layer in dataset.layer.values[(middle.ratio > HARMFUL).values]:
            x, y = (float(middle[name].sel(layer=layer)) for name in ("condition", "ratio"))
            direct_label(ax, x, y, f"layer {layer}", color, (5, -2))
    style.log_axes(ax, x=True, y=True)
    ticks = [tick for tick in (1, 1.5, 2, 5, 10, 20, 50) if tick <= 1.5 * ax.get_ylim()[1]]
    ax.set_yticks(ticks, [f"{tick}" for tick in ticks])
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="condition number", ylabel="risk clipped / unclipped")
    ax.set_title("Two matrices carry the harm")
    ax.legend(fontsize=7, loc="upper left")


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    harmed, ends = " and ".join(claims.HARMED), config.ends
    return (
        f"The last {ends} layers have {10 ** samples['deep_is_larger'].mean():.2f} times the "
        f"condition number of the first {ends}. Clipping {harmed} does the harm. How much it does "
        "in a layer has a rank correlation with depth of "
        f"{samples['harm_by_depth'].mean():.2f}, and with condition numbers of "
        f"{samples['harm_by_condition'].mean():.2f}. The MLP's matrix out of the last layer is an "
        "exception. Bars in a are the middle 80 % of runs. In b each matrix is clipped by "
        f"{config.rate:g}. " + quality(dataset, dataset.unclipped, dataset.ridge)
    )
