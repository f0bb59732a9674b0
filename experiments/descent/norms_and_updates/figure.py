"""Risks along the training, and writes shrunk on noisier labels."""

import numpy as np

from experiments.descent.norms_and_updates import claims
from experiments.descent.norms_and_updates.claims import (
    best_of_the_others,
    ratio_to_ridge,
    shrunk_ratios,
)
from experiments.descent.norms_and_updates.config import NORMS
from lsa_lab.harness.draw import style
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

LOOKS = dict(zip(NORMS, ((style.BLACK, "s"), (style.COLOURS[0], "o")), strict=True))
BARS = {"ms": 4, "lw": 0.8, "elinewidth": 0.8, "capsize": 1.5}
RATIOS = ("helps", "smaller_updates", "shrinking_helps_noisy")


def plot(dataset):
    return style.panels(dataset, 2.7, training_curves, shrinkage_curves)


def training_curves(ax, dataset):
    for norm, (color, marker) in LOOKS.items():
        ratio = ratio_to_ridge(dataset).sel(norm=norm).isel(step=slice(1, None))
        runs = ratio.transpose("run", "step").values
        thousands = ratio.step.values / 1000
        look = {"color": color, "marker": marker, "label": f"{norm} norms", **BARS}
        style.ratio_points(ax, thousands, runs, **look)
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="thousands of steps", ylabel="excess risk / ridge's")
    ax.set_title("Norms do not lower the risk")
    ax.legend()


def shrinkage_curves(ax, dataset):
    factors = dataset.shrinkage.values[1:]
    for norm, (color, marker) in LOOKS.items():
        for what, face in (("shrunk", color), ("answers", "white")):
            look = {"color": color, "marker": marker, "mfc": face, **BARS}
            style.ratio_points(ax, factors, shrunk_ratios(dataset, norm, what), **look)
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="all writes (open: answers alone), times", ylabel="risk / that unshrunk")
    ax.set_xticks(factors)
    ax.set_title("At best, smaller answers help more")


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    ratios = {id: float(np.exp(np.log(samples[id]).mean())) for id in RATIOS}
    linear, softmax = (samples[f"{stack}_grows"].mean() for stack in ("linear", "softmax"))
    ends = np.exp(np.log(ratio_to_ridge(dataset).isel(step=-1)).mean("run"))
    risk = np.log(parts.part(dataset, "by_shots").risk).mean("run")
    answers = float(
        np.exp(np.log(best_of_the_others(shrunk_ratios(dataset, what="answers"))).mean())
    )
    near = float(np.exp(risk.sel(rule="model") - risk.sel(rule="ridge")))
    return (
        "A norm before each layer multiplies the excess risk of softmax attention by "
        f"{ratios['helps']:.2f}, and the size of updates beside their tokens by "
        f"{ratios['smaller_updates']:.2g}. Where labels have {config.noisier:g} times the noise of "
        "training, shrinking all writes of models without norms multiplies the risk by "
        f"{ratios['shrinking_helps_noisy']:.2f}, and shrinking the answers alone by {answers:.2f}. "
        f"Risks end at {float(ends.sel(norm='without')):.3g} times ridge's without norms and at "
        f"{float(ends.sel(norm='with')):.3g} with. With n demonstrations updates change as "
        f"n^{linear:.2g} (linear) and n^{softmax:.2g} (softmax, {near:.3g} times ridge's risk)."
    )
