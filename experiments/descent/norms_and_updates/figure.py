"""Risks along the training, sizes by layer, writes shrunk on noisier labels; what is judged."""

import numpy as np

from experiments.descent.norms_and_updates import claims
from experiments.descent.norms_and_updates.claims import (
    best_of_the_others,
    over_ridge,
    shrunk_ratios,
)
from experiments.descent.norms_and_updates.config import NORMS
from experiments.descent.specs import spec_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

LOOKS = dict(zip(NORMS, ((style.BLACK, "s"), (style.COLOURS[0], "o")), strict=True))
BARS = {"ms": 4, "lw": 0.8, "elinewidth": 0.8, "capsize": 1.5}
CEILING = 1.04  # of c, above which answers shrunk too far would hide the rest


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.4, 2.4), ((1, 1), (1, 1)))
    training_curves(axes[0], dataset)
    layer_points(axes[1], dataset)
    shrinkage_curves(axes[2], dataset)
    judged_panel.rows(axes[3], *evidence(claims, dataset), (0.4, 1.5))
    axes[3].set(title="what is judged", xlabel="with norms / without, or shrunk / not")
    return figure


def training_curves(ax, dataset):
    for norm, (color, marker) in LOOKS.items():
        ratio = over_ridge(dataset).sel(norm=norm).isel(step=slice(1, None))
        runs = ratio.transpose("run", "step").values
        thousands = ratio.step.values / 1000
        look = {"color": color, "marker": marker, "label": f"{norm} norms", **BARS}
        style.ratio_points(ax, thousands, runs, **look)
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="thousands of steps", ylabel="excess risk / ridge's", title="risk")
    ax.legend()


def layer_points(ax, dataset):
    layers = dataset.layer.values
    for i, (norm, (color, marker)) in enumerate(LOOKS.items()):
        for name, face in (("update", color), ("written", "white")):
            runs = dataset[name].sel(norm=norm).transpose("run", "layer").values
            look = {"color": color, "marker": marker, "mfc": face, **BARS, "ls": "none"}
            style.ratio_points(ax, layers + 0.16 * (i - 0.5), runs, **look)
    style.log_axes(ax, y=True)
    ax.set_xticks(layers)
    ax.set(xlabel="layer", ylabel="|ΔW| / |h|; open: |ΔW φ| / |h|", title="sizes of updates")


def shrinkage_curves(ax, dataset):
    factors = dataset.shrinkage.values[1:]
    for norm, (color, marker) in LOOKS.items():
        for what, face in (("shrunk", color), ("answers", "white")):
            look = {"color": color, "marker": marker, "mfc": face, **BARS}
            style.ratio_points(ax, factors, shrunk_ratios(dataset, norm, what), **look)
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="all writes (open: answers alone), times", ylabel="risk / that unshrunk")
    ax.set_ylim(top=CEILING)
    ax.set_title(f"shrunk, on {results.config_of(dataset).noisier:g} times the noise")


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    mean = {name: float(np.exp(np.log(values).mean())) for name, values in samples.items()}
    ends = np.exp(np.log(over_ridge(dataset).isel(step=-1)).mean("run"))
    answers = np.exp(np.log(best_of_the_others(shrunk_ratios(dataset, what="answers"))).mean())
    plain = spec_of(config, NORMS["without"])
    task, training = plain.task, plain.training
    return (
        f"With a norm before each layer softmax attention has {mean['helps']:.2f} times the "
        "excess risk, trained alike, and its updates, beside the tokens they write to, are "
        f"{mean['smaller_updates']:.2g} times as large. On labels with {config.noisier:g} "
        "times the noise of training, shrinking all writes of models without norms multiplies "
        f"the risk by {mean['shrinking_helps_noisy']:.2f}, shrinking their answers alone "
        f"by {answers:.2f}. "
        f"Geometric means over pairs with {level()} intervals. a: beside ridge regression with "
        f"the best penalty; at the end {float(ends.sel(norm='without')):.3g} without norms and "
        f"{float(ends.sel(norm='with')):.3g} with. b: medians over prompts, at the query; filled: "
        "|ΔW| in the feature space of the kernel, keys and queries balanced, open: what a layer "
        f"writes, beside its token. c: up to {CEILING:g}. d: {judged_panel.KEY}. "
        f"d = {task.d}, n = {max(task.lengths)}, {plain.architecture.depth} layers; "
        f"{training.seeds} pairs, {training.steps} steps of {training.batch} prompts; "
        f"{config.prompts} prompts of each pair."
    )
