"""The figure of `many_shots`, drawn from its result alone."""

import numpy as np

from experiments.matching.many_shots.claims import predicted
from experiments.matching.many_shots.config import LINEAR, SCALINGS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    noises = dataset.noise.values
    drawn, axes = style.figure(3.2 * len(noises), 4.0, (1, len(noises)))
    shots, lost, top = dataset.shots.values, 0, 30 * settings.d
    for ax, noise in zip(axes, noises, strict=True):
        there = dataset.sel(noise=noise)
        for i, model in enumerate(LINEAR):
            for scaling, marker in zip(SCALINGS, ("o", "^"), strict=True):
                runs = there.error.sel(model=model, scaling=scaling).transpose("run", "shots")
                shown = runs.values
                label = f"{model}, {'1/n' if scaling == 'by n' else 'fixed'}"
                lost += style.band(ax, shots, shown, label, style.COLOURS[i], marker)
        soft = there.softmax.transpose("run", "few").values
        lost += style.band(ax, dataset.few.values, soft, "softmax", style.COLOURS[2], "s")
        if noise:
            style.line(ax, shots, there.bayes.median("run"), "Bayes rule", style=":")
        ax.axvline(settings.n, color="grey", lw=0.8, ls="--")
        ax.axvline(float(np.median(predicted(dataset))), color="grey", lw=0.8, ls="-.")
        style.log_axes(ax, x=True, y=True, ticks=shots[shots % settings.n == 0][::2])
        ax.set(xlabel="demonstrations", ylim=(2e-7, top))
        ax.set_title(f"noise {noise:g}")
    axes[0].set_ylabel("squared error, median over prompts")
    axes[-1].legend(ncols=2, loc="lower right")
    finished = int((dataset.status != "diverged").sum())
    style.caption(
        drawn,
        f"Divided by n, more demonstrations than the {settings.n} of training (dashes) help: the "
        "descent to the end, trained stacks until their bias is left. Divided by "
        f"{settings.n} always, the same weights overshoot, off the top, soon after the descent's "
        "η λ_max(XᵀX) passes 2 (dash-dot). "
        f"{settings.depth} layers. Median of {settings.runs} runs and the middle 80 % of them; "
        f"{lost} left out as not finite; {finished} of {dataset.status.size} trainings finished. "
        f"Softmax only up to {settings.softmax_most}: its cost is quadratic. d = {settings.d}.",
    )
    return drawn
