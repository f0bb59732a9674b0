"""Errors against the number of demonstrations, a panel for each level of noise in the labels."""

import numpy as np

from experiments.matching.many_shots.claims import growth, predicted, softmax_growth
from experiments.matching.many_shots.config import LINEAR, SCALINGS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    noises = dataset.noise.values
    figure, axes = style.figure(3.2 * len(noises), 4.0, (1, len(noises)))
    for ax, noise in zip(axes, noises, strict=True):
        errors(ax, dataset, noise)
    axes[0].set_ylabel("squared error, median over prompts")
    axes[-1].legend(ncols=2, loc="lower right")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    by_n = growth(dataset).sel(scaling="by n").median("run")
    left = [float(by_n.sel(model=model)) for model in LINEAR]
    left.append(float(softmax_growth(dataset).median("run")))
    finished = int((dataset.status != "diverged").sum())
    missing = style.missing(dataset.error) + style.missing(dataset.softmax)
    return (
        f"More demonstrations than in training leave {min(left):.2g} to {max(left):.2g} of the "
        "error if attention divides by their number; with a fixed divisor linear attention "
        f"overshoots. Those beyond the {config.n} of training (dashes) help the descent to the end "
        f"and trained stacks until their bias is left. Divided by {config.n} always, the same "
        "weights overshoot, off the top, soon after the descent's η λ_max(XᵀX) passes 2 "
        f"(dash-dot). {config.depth} layers. Median of {config.runs} runs and the middle 80 % of "
        f"them; {missing} left out as not finite; {finished} of {dataset.status.size} trainings "
        f"finished. Softmax only up to {config.softmax_most}: its cost is quadratic. "
        f"d = {config.d}."
    )


def errors(ax, dataset, noise):
    config, at_noise, shots = results.config_of(dataset), dataset.sel(noise=noise), dataset.shots
    for model, color in zip(LINEAR, style.COLOURS, strict=False):
        for scaling, marker in zip(SCALINGS, ("o", "^"), strict=True):
            runs = at_noise.error.sel(model=model, scaling=scaling).transpose("run", "shots")
            label = f"{model}, {'1/n' if scaling == 'by n' else 'fixed'}"
            style.band(ax, shots.values, runs, label, color, marker)
    softmax = at_noise.softmax.transpose("run", "few")
    style.band(ax, dataset.few.values, softmax, "softmax", style.COLOURS[2], "s")
    if noise:
        style.line(ax, shots, at_noise.bayes.median("run"), "Bayes rule", style=":")
    ax.axvline(config.n, color="grey", lw=0.8, ls="--")
    ax.axvline(float(np.median(predicted(dataset))), color="grey", lw=0.8, ls="-.")
    style.log_axes(ax, x=True, y=True, ticks=shots.values[shots.values % config.n == 0][::2])
    ax.set(xlabel="demonstrations", ylim=(2e-7, 30 * config.d))
    ax.set_title(f"noise {noise:g}")
