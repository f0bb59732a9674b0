"""Distances of trained layers from the steps of five algorithms, angles, and what is judged."""

from experiments.descent.implicit_trajectories.claims import cosines, distances, nearest, samples
from experiments.descent.implicit_trajectories.config import ALGORITHMS, MODELS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import direct_label, end_labels

LOOKS = {
    "GD": style.METHOD["descent"],
    "GD++": style.METHOD["GD++"],
    "preconditioned GD": style.METHOD["preconditioned descent"],
    "Newton": style.METHOD["Newton"],
    "ridge": style.METHOD["ridge"],
}
FOLLOWED = ("GD", "GD++")  # whose directions are shown
JUDGED = {
    "linear": "linear: distance to GD++",
    "plus_plus": "linear: GD++'s over GD's",
    "not_preconditioning": "linear: GD's less GD++'s",
    "not_ridge": "linear: ridge's less GD++'s",
    "direction": "linear: worst cosine with GD++",
    "own_step": "linear: own step nearest, share",
    "softmax": "softmax: least distance",
    "newton": "softmax: GD's less Newton's",
}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.7, 2.5), ((1, 1), (1, 1)))
    for ax, model in zip(axes, MODELS, strict=False):
        apart(ax, dataset, model)
    directions(axes[2], dataset)
    judged(axes[3], dataset)
    return figure


def apart(ax, dataset, model):
    layers, criterion = dataset.layer.values[1:], results.config_of(dataset).distance
    ends = {}
    for j, (name, look) in enumerate(LOOKS.items()):
        runs = distances(dataset, model, name)
        x = layers + (j - 2) * 0.05
        style.mean_points(ax, x, runs, lw=0.6, capsize=2, **look)
        ends[name] = runs[:, -1].mean()
    style.log_axes(ax, y=True)
    ax.set(xlabel="layer, or step", ylabel="relative distance of ∂ŷ/∂x", xticks=layers)
    ax.set(title=f"{model} attention", ylim=(criterion / 20, criterion * 12))
    ax.set_xlim(right=layers[-1] + 0.2)
    bound(ax, layers[-1], criterion, (-2, -2))
    end_labels(ax, ends, [look["color"] for look in LOOKS.values()])


def directions(ax, dataset):
    layers, criterion = dataset.layer.values[1:], results.config_of(dataset).cosine
    ends, colors = {}, []
    for i, (model, face) in enumerate(zip(MODELS, (None, "white"), strict=True)):
        for j, name in enumerate(FOLLOWED):
            runs, look = cosines(dataset, model, name), LOOKS[name]
            x = layers + (2 * i + j - 1.5) * 0.06
            mark = look | {"mfc": face or look["color"]}
            style.mean_points(ax, x, runs, lw=0.6, capsize=2, **mark)
            ends[f"{model}, {name}"] = runs[:, -1].mean()
            colors.append(look["color"])
    ax.set(xlabel="layer, or step", ylabel="cosine of ∂ŷ/∂x", xticks=layers, title="direction")
    ax.set_xlim(right=layers[-1] + 0.2)
    bound(ax, layers[0], criterion, (3, 0))
    end_labels(ax, ends, colors)


def bound(ax, layer, criterion, place):
    ax.plot([layer - 0.2, layer + 0.2], [criterion] * 2, color="grey", lw=1.2)
    direct_label(ax, layer + 0.2, criterion, "bound", "dimgrey", place)


def judged(ax, dataset):
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), JUDGED, (-0.3, 1.0))
    ax.set(xlabel="distance, cosine or share", title="what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    names = [nearest(dataset, model) for model in MODELS]
    far = [distances(dataset, *pair)[:, -1].mean() for pair in zip(MODELS, names, strict=True)]
    plus_plus = distances(dataset, "linear", "GD++")[:, -1].mean()
    missing = sum(
        style.missing(distances(dataset, model, name)) for model in MODELS for name in ALGORITHMS
    )
    ratios = dataset.risk.mean("run") / dataset.ridge.mean("run")
    risks = [ratios.sel(model=name).item() for name in MODELS]
    task = config.linear.task
    return (
        f"The last layer of {MODELS[0]} attention is nearest to {names[0]}, {100 * far[0]:.2g} % "
        f"away (GD++: {100 * plus_plus:.2g} %), that of {MODELS[1]} attention to {names[1]}, "
        f"{100 * far[1]:.2g} % away. Our models' risk is {risks[0]:.3g} ({MODELS[0]}) and "
        f"{risks[1]:.3g} ({MODELS[1]}) times that of the ridge regression fitted to them. "
        f"a to c: layer t beside step t, means of {dataset.sizes['run']} runs with 95 % "
        f"intervals; parameters are fitted, on other prompts, to each run's prediction, for ridge "
        f"to that of each layer. "
        f"d: {judged_panel.KEY}. {missing} numbers left out as not finite. d = {task.d}, "
        f"n = {max(task.lengths)}, noise {task.noise_std:g}."
    )
