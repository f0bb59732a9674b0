"""The figure of `implicit_trajectories`, drawn from its result alone."""

import numpy as np

from experiments.descent.implicit_trajectories.claims import beside, nearest
from experiments.descent.implicit_trajectories.compute import PATHS
from experiments.models.stacks import MODELS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 3.4, (1, 3))
    layers, lost, verdicts = dataset.layer.values[1:], 0, []
    for i, (name, ax) in enumerate(zip(MODELS, axes, strict=False)):
        for j, algorithm in enumerate(PATHS):
            apart, cosine = beside(dataset, name, algorithm)
            look = (algorithm, style.COLOURS[j], style.MARKERS[j])
            lost += style.band(ax, layers + (j - 2) * 0.06, apart, *look)
            if algorithm in ("GD", "GD++"):
                look = (f"{name}, {algorithm}", style.COLOURS[j], style.MARKERS[i])
                lost += style.band(axes[2], layers + (2 * i + j - 1.5) * 0.06, cosine, *look)
        ax.axhline(settings.distance, color="grey", lw=0.8, ls="--")
        style.log_axes(ax, y=True)
        ax.set(xlabel="layer, or step", ylabel="relative distance of ∂ŷ/∂x", xticks=layers)
        ax.set(title=f"{name} attention", ylim=(settings.distance / 5, settings.distance * 20))
        far = np.median(beside(dataset, name, nearest(dataset, name))[0][:, -1])
        verdicts.append(f"{nearest(dataset, name)} to {name} attention ({far:.0%} away)")
    axes[0].legend()
    axes[2].axhline(settings.cosine, color="grey", lw=0.8, ls="--")
    axes[2].set(xlabel="layer, or step", ylabel="cosine of ∂ŷ/∂x", xticks=layers, title="direction")
    axes[2].legend()
    style.caption(
        drawn,
        f"Nearest at the last layer: {', '.join(verdicts)}. Median of {settings.runs} runs and the "
        f"middle 80 % of them; {lost} numbers left out as not finite. d = {settings.d}, "
        f"n = {settings.n}, no noise. Settings are fitted, on other prompts, to each run's "
        "prediction, for ridge to that of each layer. Dashes: criteria.",
    )
    return drawn
