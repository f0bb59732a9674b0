"""Errors against the number of demonstrations, a panel for each level of noise in the labels."""

import numpy as np

from experiments.matching.many_shots.claims import (
    growth,
    over_bayes,
    predicted,
    samples,
    softmax_growth,
)
from experiments.matching.many_shots.config import LINEAR, SCALINGS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style


def plot(dataset):
    noises = dataset.noise.values
    count = len(noises)
    figure, axes = style.figure(6.75, 2.9 * (count // 2 + 1), (count // 2 + 1, 2))
    for ax, noise in zip(axes, noises, strict=False):
        errors(ax, dataset, noise)
        ax.set_ylabel("squared error, median")
    axes[count - 1].legend(ncols=2, loc="lower right", columnspacing=0.8, handlelength=1.2)
    judged_rows(axes[count], dataset)
    for ax in axes[count + 1 :]:
        ax.set_axis_off()
    return figure


def judged_rows(ax, dataset):
    names = {
        f"{model}_{row}": f"{model}, {name}"
        for model in LINEAR
        for row, name in (("normalised", "1/n"), ("fixed", "fixed"), ("bayes", "1/n, over Bayes"))
    }
    names |= {"softmax": "softmax", "threshold": "unsafe from / η λ_max = 2"}
    style.log_axes(ax, x=True)
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), names, (1e-3, 1e3))
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="judged ratio of errors, or of numbers")
    ax.set_title("what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    by_n = growth(dataset).sel(scaling="by n").median("run")
    left = [float(by_n.sel(model=model)) for model in LINEAR]
    left.append(float(softmax_growth(dataset).median("run")))
    finished = int((dataset.status != "diverged").sum())
    missing = style.missing(dataset.error) + style.missing(dataset.softmax)
    far = [f"{ratio:.2g}" for ratio in over_bayes(dataset)]
    return (
        f"They leave {min(left):.2g} to {max(left):.2g} of the "
        "error if attention divides by their number; with a fixed divisor linear attention "
        f"overshoots. Those beyond the {config.n} of training (dashes) help the descent to the end "
        f"and trained stacks until their bias is left. Divided by {config.n} always, the same "
        "weights overshoot, off the top, soon after the descent's η λ_max(XᵀX) passes 2 "
        f"(dash-dot). {config.depth} layers, trained briefly: at {config.n} descent, linear and "
        f"softmax have {', '.join(far)} times the Bayes rule's median error. Median of "
        f"{config.runs} runs and the middle 80 % of them; {missing} left out as not finite; "
        f"{finished} of {dataset.status.size} trainings finished. Softmax only up to "
        f"{config.softmax_most}: its cost is quadratic. d = {config.d}. Last panel: "
        f"{judged_panel.KEY}."
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
