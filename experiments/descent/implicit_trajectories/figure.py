"""Distances of trained layers from the steps of five algorithms, angles, and what is judged."""

from experiments.descent.implicit_trajectories.claims import cosines, distances, nearest, samples
from experiments.descent.implicit_trajectories.config import ALGORITHMS, MODELS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

FOLLOWED = ("GD", "GD++")  # whose directions are shown
JUDGED = {
    "linear": "linear: distance to GD++",
    "plus_plus": "over that to GD",
    "not_preconditioning": "GD's less GD++'s",
    "not_ridge": "ridge's less GD++'s",
    "direction": "cosine, worst layer",
    "own_step": "own step nearest",
    "softmax": "softmax: nearest, distance",
    "newton": "GD's less Newton's",
}


def plot(dataset):
    figure, axes = style.figure(6.75, 5.4, (2, 2))
    for ax, model in zip(axes, MODELS, strict=False):
        apart(ax, dataset, model)
    axes[0].legend(loc="lower left")
    directions(axes[2], dataset)
    judged(axes[3], dataset)
    return figure


def apart(ax, dataset, model):
    layers, criterion = dataset.layer.values[1:], results.config_of(dataset).distance
    for j, name in enumerate(ALGORITHMS):
        look = dict(fmt=style.MARKERS[j], color=style.COLOURS[j], capsize=2)
        runs = distances(dataset, model, name)
        style.mean_points(ax, layers + (j - 2) * 0.08, runs, name, **look)
    ax.axhline(criterion, color=style.COLOURS[1], lw=0.8, ls="--")
    style.log_axes(ax, y=True)
    ax.set(xlabel="layer, or step", ylabel="relative distance of ∂ŷ/∂x", xticks=layers)
    ax.set(title=f"{model} attention", ylim=(criterion / 5, criterion * 20))


def directions(ax, dataset):
    layers, criterion = dataset.layer.values[1:], results.config_of(dataset).cosine
    for i, model in enumerate(MODELS):
        for j, name in enumerate(FOLLOWED):
            x = layers + (2 * i + j - 1.5) * 0.08
            look = dict(fmt=style.MARKERS[i], color=style.COLOURS[j], capsize=2)
            style.mean_points(ax, x, cosines(dataset, model, name), f"{model}, {name}", **look)
    ax.axhline(criterion, color=style.COLOURS[1], lw=0.8, ls="--")
    ax.set(xlabel="layer, or step", ylabel="cosine of ∂ŷ/∂x", xticks=layers, title="direction")
    ax.legend(loc="lower right")


def judged(ax, dataset):
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), JUDGED, (-0.3, 1.0))
    ax.axvline(0, color="grey", lw=0.8)
    ax.set_title("what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    names = [nearest(dataset, model) for model in MODELS]
    far = [distances(dataset, *pair)[:, -1].mean() for pair in zip(MODELS, names, strict=True)]
    plus_plus = distances(dataset, "linear", "GD++")[:, -1].mean()
    missing = sum(
        style.missing(distances(dataset, model, name)) for model in MODELS for name in ALGORITHMS
    )
    risks = [100 * dataset.risk.sel(model=name).median().item() / config.d for name in MODELS]
    return (
        f"The last layer of {MODELS[0]} attention is nearest to {names[0]}, {100 * far[0]:.2g} % "
        f"away (GD++: {100 * plus_plus:.2g} %), that of {MODELS[1]} attention to {names[1]}, "
        f"{100 * far[1]:.2g} % away. Our models are not trained to the end: the median run keeps "
        f"{risks[0]:.2g} % ({MODELS[0]}) and {risks[1]:.2g} % ({MODELS[1]}) of the error of "
        f"predicting 0, where least squares keeps none. Points: means of {config.runs} runs with "
        f"95 % intervals; {missing} numbers left out as not finite. d = {config.d}, "
        f"n = {config.n}, no noise. Parameters are fitted, on other prompts, to each run's "
        f"prediction, for ridge to that of each layer. Red: bounds. "
        f"d: {judged_panel.KEY}."
    )
