"""Panels of `lm_clipping`, of one collection: changes by layer, shots and matrix, and rivals."""

import itertools

import numpy as np
import xarray as xr

from experiments.language.lm_clipping.changes import changes, flat
from experiments.language.lm_clipping.config import DROPPED, PARTS
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.statistics import best_elsewhere
from lsa_lab.store import results

TITLES = {"accuracy": "accuracy", "auc": "AUC", "entropy": "cross-entropy after best shift"}
LINES = {"attention": "-", "MLP": "--"}


def rate_words(rate) -> str:
    return "dropped" if rate == DROPPED else f"{rate:g}"


def layer_curves(ax, dataset, reading):
    """A curve for each part and rate: the change by clipping a layer, dropping it last."""
    change = changes(dataset).sel(reading=reading)
    rates, layers = dataset.rate.values, dataset.layer.values
    ax.axhline(0, color=style.BLACK, lw=0.8, zorder=0)
    pairs = itertools.product(PARTS, zip(rates, style.COLOURS, style.MARKERS, strict=False))
    for part, (rate, color, marker) in pairs:
        runs = change.sel(part=part, rate=rate).transpose("run", "layer")
        label = rate_words(rate) if part == "attention" else None
        style.mean_band(ax, layers, runs, label, color, marker, LINES[part])
    ax.set_xticks(layers)
    ax.set(xlabel="layer that is clipped", ylabel=f"change of {TITLES[reading]}")


def plot_gains(ax, dataset):
    """What the best edit for the other sets gains, and what its rivals do, in accuracy and AUC."""
    config = results.config_of(dataset)
    clipped = changes(dataset).sel(rate=list(config.rates))
    plain = dataset.unclipped.sel(reading="accuracy")
    rivals = dataset.rival - plain
    rows = {
        "one edit": best_elsewhere(flat(clipped.sel(reading="accuracy"))),
        "calibrated": rivals.sel(rival_of="calibrated").values,
        "threshold fitted": rivals.sel(rival_of="threshold").values,
        "one edit, AUC": best_elsewhere(flat(clipped.sel(reading="auc"))),
    }
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    for row, (runs, color) in enumerate(zip(rows.values(), style.COLOURS, strict=False)):
        ax.plot(style.mean_ends(runs[:, None]), [row, row], color=color, lw=0.8)
        ax.plot(runs.mean(), row, "o", color=color)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel="gain of accuracy or AUC")


def plot_shots(ax, dataset):
    """AUC by demonstrations, unclipped and with a part of one of the ends clipped."""
    config = results.config_of(dataset)
    own = dict(layer=dataset.end.values, rate=max(config.rates))
    own = dataset.edited.sel(own).rename(layer="end").expand_dims(shots=[config.shots])
    plain = dataset.unclipped.expand_dims(shots=[config.shots])
    plain, edited = (
        xr.concat([other, here], "shots", coords="minimal", compat="override")
        .sel(reading="auc")
        .sortby("shots")
        for other, here in ((dataset.shots_unclipped, plain), (dataset.shots_edited, own))
    )
    shots, plain = plain.shots.values, plain.transpose("run", "shots")
    style.mean_band(ax, shots, plain, None, style.BLACK, "D")
    heights, colors = {"unclipped": float(plain.mean("run")[-1])}, [style.BLACK]
    for end, color in zip(dataset.end.values, style.COLOURS, strict=False):
        for part, line in LINES.items():
            runs = edited.sel(end=end, part=part).transpose("run", "shots")
            style.mean_band(ax, shots, runs, None, color, "o", line)
            heights[f"{part}, layer {end}"] = float(runs.mean("run")[-1])
            colors.append(color)
    ax.axhline(0.5, color="grey", lw=0.8, ls=":")
    ax.set_xticks(shots)
    ax.set(xlabel="demonstrations", ylabel="AUC", title=f"clipped at {max(config.rates):g}")
    end_labels(ax, heights, colors)


def plot_matrices(ax, dataset):
    """The change of AUC by clipping one matrix alone, in each of the ends."""
    change = (dataset.matrix_edited - dataset.unclipped).sel(reading="auc")
    ends = zip(dataset.end.values, style.COLOURS, style.MARKERS, (-0.13, 0.13), strict=False)
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    for end, color, marker, shift in ends:
        runs = change.sel(end=end).transpose("run", "matrix").values
        y = np.arange(runs.shape[1]) + shift
        ax.plot(style.mean_ends(runs), [y, y], color=color, lw=0.8)
        ax.plot(runs.mean(0), y, marker, color=color, label=f"layer {end}")
    names = [
        f"$W_{{{name[2:].upper()}}}$" if name.startswith("w_") else name.replace("_", " ")
        for name in dataset.matrix.values
    ]
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.5, -0.5), xlabel="change of AUC")
    ax.legend(loc="lower left")
