"""What clipping a layer of a language model does, and what a search gains beside its rivals."""

import itertools

import numpy as np

from experiments.language.data_sets import called
from experiments.language.lm_clipping import claims
from experiments.language.lm_clipping.config import DROPPED, MATRICES, PARTS, SEARCHES, WIDE
from experiments.language.lm_clipping.readings import logs
from lsa_lab.harness.draw import style
from lsa_lab.store import results

LINES = {"attention": "-", "MLP": "--"}
LABELS = dict(zip(MATRICES, ("W_Q", "W_K", "W_V", "W_O", "in", "gate", "out"), strict=True))


def plot(dataset):
    return style.panels(dataset, 2.7, plot_layers, plot_gains)


def appendix(dataset):
    figure, axes = style.figure(6.75, 2.9, (1, 2), first="c")
    plot_ratios(axes[0], dataset, 1, "rounded")
    axes[0].set(title="No rise of condition is seen", ylabel="condition number")
    plot_ratios(axes[1], dataset, 0.5, "random")
    axes[1].set(title="Layer 1 stands out in attention", ylabel="first over median singular value")
    axes[1].set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=7, loc="outside upper center")
    return figure


def plot_ratios(ax, dataset, share, version):
    """A line for each matrix as stored; dots: medians of draws of another version."""
    spectra = claims.numbers(dataset).spectra
    stored, others = (10 ** logs(spectra, each, share) for each in ("stored", version))
    layers = range(1, 1 + stored.sizes["depth"])
    for name, color in zip(MATRICES, (*style.COLOURS[:6], style.BLACK), strict=True):
        style.line(ax, layers, stored.sel(matrix=name), color=color, label=LABELS[name])
        ax.plot(layers, others.sel(matrix=name).median("draw"), ".", color=color, ms=3, alpha=0.6)
    style.log_axes(ax, y=True)
    ax.set(xlabel="layer")


def plot_layers(ax, dataset):
    """A curve for each part and rate: the change by clipping a layer, dropping it last."""
    (name, task), *_ = results.config_of(dataset).tasks
    change = claims.numbers(dataset).change(name)
    rates, layers = change.rate.values, 1 + change.layer.values
    ax.axhline(0, color=style.BLACK, lw=0.8, zorder=0)
    looks = zip(rates, style.COLOURS, style.MARKERS, strict=False)
    for part, (rate, color, marker) in itertools.product(PARTS, looks):
        runs = change.sel(part=part, rate=rate).transpose("run", "layer")
        label = f"{part} {'dropped' if rate == DROPPED else f'{rate:g}'}"
        style.mean_band(ax, layers, runs, label, color, marker, LINES[part])
    ax.set(xticks=layers, xlabel="layer that is clipped", ylabel=f"change of AUC, {task.title}")
    ax.set_title(f"Layer {max(layers)} keeps the AUC on reviews")
    ax.legend(title="part, rate of clipping", fontsize=7, title_fontsize=7, loc="lower right")


def plot_gains(ax, dataset):
    """What each search and its rivals gain on fresh sentences; squares: on validation."""
    numbers = claims.numbers(dataset)
    rows = {name: numbers.gain(name).mean("task") for name in SEARCHES} | numbers.rivals
    gains = np.stack([*rows.values()], axis=1)
    style.mean_rows(ax, range(len(rows)), gains, color=style.COLOURS[0], marker="o")
    promised = numbers.search.validation_gain.mean(("task", "run"))
    ax.plot(promised.sel(search=list(SEARCHES)), range(len(SEARCHES)), "s", color="grey")
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.set_yticks(range(len(rows)), [name.replace(", ", ",\n") for name in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.6), xlabel="gain of accuracy")
    ax.set_title("A threshold gains as much")


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.numbers(dataset)
    tasks = dict(config.tasks)
    titles = " and ".join(task.title for task in tasks.values())

    def listed(part, reading):  # of each data set
        changes = (numbers.flatness(name, part, reading).mean().item() for name in tasks)
        return " and ".join(f"{change:+.3f}" for change in changes)

    wide, fitted = numbers.gain(WIDE).mean(), numbers.rivals["threshold fitted"].mean()
    return (
        f"Clipping attention in layer {1 + max(config.layers)} of {called(config.model_name)} "
        f"changes AUC by {listed('attention', 'auc')} on {titles}. Clipping the MLP changes AUC "
        f"by {listed('MLP', 'auc')}, and accuracy by {listed('MLP', 'accuracy')}. On fresh "
        f"sentences the wider search gains {wide:+.3f} of accuracy, and a fitted threshold "
        f"{fitted:+.3f}. Squares are gains on validation. Intervals are over {config.runs} (a) and "
        f"{config.search.runs} runs (b). Dots are other rounding errors (c), random matrices (d)."
    )
