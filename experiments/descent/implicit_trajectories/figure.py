"""Distances of trained layers from the steps of five algorithms, and the angles between them."""

from experiments.descent.implicit_trajectories.claims import cosines, distances, nearest
from experiments.descent.implicit_trajectories.config import ALGORITHMS, MODELS
from lsa_lab import results
from lsa_lab.harness import style

FOLLOWED = ("GD", "GD++")  # whose directions are shown


def plot(dataset):
    figure, axes = style.figure(9.0, 3.4, (1, 3))
    for ax, model in zip(axes, MODELS, strict=False):
        apart(ax, dataset, model)
    axes[0].legend()
    directions(axes[2], dataset)
    return figure


def apart(ax, dataset, model):
    layers, criterion = dataset.layer.values[1:], results.config_of(dataset).distance
    for j, name in enumerate(ALGORITHMS):
        runs = distances(dataset, model, name)
        style.band(ax, layers + (j - 2) * 0.06, runs, name, style.COLOURS[j], style.MARKERS[j])
    ax.axhline(criterion, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, y=True)
    ax.set(xlabel="layer, or step", ylabel="relative distance of ∂ŷ/∂x", xticks=layers)
    ax.set(title=f"{model} attention", ylim=(criterion / 5, criterion * 20))


def directions(ax, dataset):
    layers, criterion = dataset.layer.values[1:], results.config_of(dataset).cosine
    for i, model in enumerate(MODELS):
        for j, name in enumerate(FOLLOWED):
            x = layers + (2 * i + j - 1.5) * 0.06
            runs = cosines(dataset, model, name)
            style.band(ax, x, runs, f"{model}, {name}", style.COLOURS[j], style.MARKERS[i])
    ax.axhline(criterion, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="layer, or step", ylabel="cosine of ∂ŷ/∂x", xticks=layers, title="direction")
    ax.legend()


def caption(dataset) -> str:
    config = results.config_of(dataset)
    names = [nearest(dataset, model) for model in MODELS]
    far = [distances(dataset, *pair)[:, -1].mean() for pair in zip(MODELS, names, strict=True)]
    missing = sum(
        style.missing(distances(dataset, model, name)) for model in MODELS for name in ALGORITHMS
    )
    return (
        f"Nearest to the last layer of {MODELS[0]} attention is {names[0]}, {100 * far[0]:.2g} % "
        f"away on average, and to that of {MODELS[1]} attention {names[1]}, {100 * far[1]:.2g} % "
        f"away. Points: median of {config.runs} runs and the middle 80 % of them; {missing} "
        f"numbers left out as not finite. d = {config.d}, n = {config.n}, no noise. Parameters are "
        f"fitted, on other prompts, to each run's prediction, for ridge to that of each layer. "
        f"Dashes: criteria."
    )
