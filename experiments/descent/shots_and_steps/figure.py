"""Errors of trained models against shots and training steps, beside known rules."""

import numpy as np

from experiments.descent.shots_and_steps.claims import ratio_to_bayes, share_left
from experiments.descent.shots_and_steps.config import MODELS
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.store import results

RIDGE, LEAST_SQUARES = style.METHOD["ridge"]["color"], style.METHOD["least squares"]["color"]
MOST = 140.0  # per cent of predicting zero; linear attention at few shots is far above


def plot(dataset):
    figure, axes = style.figure(6.75, 2.7, (1, 2))
    shots_points(axes[0], dataset.isel(noise=0))
    steps_points(axes[1], dataset.isel(noise=1))
    return figure


def shots_points(ax, dataset):
    """Shares of the error of predicting zero, of models and of least squares; where the median is
    beyond the panel it diverges."""
    config, shots = results.config_of(dataset), dataset.shots.values
    style.log_axes(ax, x=True, ticks=shots)
    best = 100 / config.d * dataset.known.sel(rule="least squares").median("run")
    style.line(ax, shots, best, color=LEAST_SQUARES)
    direct_label(ax, shots[0], 2, "least squares", LEAST_SQUARES, (1, 1))
    ends = {}
    for name, aside in zip(MODELS, (1 / 1.015, 1.015), strict=True):
        runs = 100 / config.d * dataset.error.sel(model=name).transpose("run", "shots").values
        look, middle = style.METHOD[name], np.median(runs, 0)
        kept = middle <= MOST
        style.median_points(ax, aside * shots[kept], runs[:, kept], ls="", capsize=2, **look)
        ax.plot(shots[~kept], np.full(sum(~kept), MOST), "^", color=look["color"], clip_on=False)
        if not kept.all():
            direct_label(ax, shots[~kept][-1], MOST, f"{name} diverges", look["color"], (6, 0))
        left = middle[list(shots).index(2 * config.d)]
        direct_label(ax, 2 * config.d, left, f"{left:.2g} %", look["color"], (6, 6))
        ends[name] = middle[-1]
    ax.axvline(config.n, 0, 0.85, color="grey", lw=0.8, ls="--")
    direct_label(ax, config.n, 0.8 * MOST, "in training", "dimgrey", (3, 0))
    ax.set(ylim=(-3, MOST), xlim=(shots[0] / 1.25, shots[-1] * 1.1), xlabel="shots")
    ax.set(ylabel="excess risk, % of predicting 0", title="A few shots teach most")
    end_labels(ax, ends, [style.METHOD[name]["color"] for name in MODELS])


def steps_points(ax, dataset):
    config = results.config_of(dataset)
    bayes = dataset.known.sel(rule="Bayes rule", shots=config.n)
    for name in MODELS:
        runs, steps = dataset.learning.sel(model=name) / bayes, dataset.steps.sel(model=name).values
        look, end = style.METHOD[name], runs.isel(look=-1).median().item()
        style.median_points(ax, steps, runs.transpose("run", "look"), ls="", capsize=2, **look)
        direct_label(ax, steps[-1], end, f"{name}: {end:.2g}", look["color"], (6, 0))
    ax.axhline(1, color=RIDGE)
    direct_label(ax, 0, 1, "ridge", RIDGE, (1, 2))
    style.log_axes(ax, y=True)
    ax.set(xlabel=f"training steps, {config.n} shots", ylabel="excess risk / ridge's")
    ax.set_title("Ridge stays ahead")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    left = [100 * share_left(dataset, name, 2).median().item() for name in MODELS]
    ratios = [ratio_to_bayes(dataset, name).median().item() for name in MODELS]
    diverged = int(dataset.status.astype(str).str.startswith("diverged").sum())
    return (
        f"A few shots teach most: at {2 * config.d} = 2d shots {left[0]:.2g} % of the error is "
        f"left in {MODELS[0]} stacks and {left[1]:.2g} % in {MODELS[1]} ones. With noise, training "
        f"ends at {ratios[0]:.2g} and {ratios[1]:.2g} times the Bayes rule's error. Linear "
        f"layers explode on single prompts that are shorter than in training. Panel a has no "
        f"noise. {diverged} of "
        f"{dataset.status.size} trainings diverged."
    )
