"""Distances of trained layers from the steps of five algorithms, angles, and what is judged."""

from experiments.descent.implicit_trajectories import claims
from experiments.descent.implicit_trajectories.claims import (
    COSINE,
    DISTANCE,
    cosines,
    distances,
    last_distance,
    nearest,
)
from experiments.descent.implicit_trajectories.config import ALGORITHMS, MODELS
from experiments.descent.specs import spec_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

LOOKS = {
    "GD": style.METHOD["descent"],
    "GD++": style.METHOD["GD++"],
    "preconditioned GD": style.METHOD["preconditioned descent"],
    "Newton": style.METHOD["Newton"],
    "ridge": style.METHOD["ridge"],
}
FOLLOWED = ("GD", "GD++")  # whose directions are shown


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.7, 2.5), ((1, 1), (1, 1)))
    for ax, model in zip(axes, MODELS, strict=False):
        layer_distances(ax, dataset, model)
    directions(axes[2], dataset)
    judged_panel.rows(axes[3], *evidence(claims, dataset), (-0.3, 1.0))
    axes[3].set(xlabel="distance, cosine or share", title="what is judged")
    return figure


def layer_distances(ax, dataset, model):
    layers, ends = dataset.layer.values[1:], {}
    for j, (name, look) in enumerate(LOOKS.items()):
        runs = distances(dataset, model, name)
        x = layers + (j - 2) * 0.05
        style.mean_points(ax, x, runs, lw=0.6, capsize=2, **look)
        ends[name] = runs[:, -1].mean()
    style.log_axes(ax, y=True)
    ax.set(xlabel="layer, or step", ylabel="relative distance of ∂ŷ/∂x", xticks=layers)
    ax.set(title=f"{model} attention", ylim=(DISTANCE / 20, DISTANCE * 12))
    ax.set_xlim(right=layers[-1] + 0.2)
    bound(ax, layers[-1], DISTANCE, (-2, -2))
    end_labels(ax, ends, [look["color"] for look in LOOKS.values()])


def directions(ax, dataset):
    layers, ends, colors = dataset.layer.values[1:], {}, []
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
    bound(ax, layers[0], COSINE, (3, 0))
    end_labels(ax, ends, colors)


def bound(ax, layer, criterion, place):
    ax.plot([layer - 0.2, layer + 0.2], [criterion] * 2, color="grey", lw=1.2)
    direct_label(ax, layer + 0.2, criterion, "bound", "dimgrey", place)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    kinds = list(MODELS)
    names = [nearest(dataset, model) for model in MODELS]
    far = [last_distance(dataset, *pair).mean() for pair in zip(MODELS, names, strict=True)]
    plus_plus = last_distance(dataset, "linear", "GD++").mean()
    missing = sum(
        style.missing(distances(dataset, model, name)) for model in MODELS for name in ALGORITHMS
    )
    ratios = dataset.risk.mean("run") / dataset.ridge.mean("run")
    risks = [ratios.sel(model=name).item() for name in MODELS]
    task = spec_of(config, MODELS["linear"]).task
    return (
        f"The last layer of {kinds[0]} attention is nearest to {names[0]}, {100 * far[0]:.2g} % "
        f"away (GD++: {100 * plus_plus:.2g} %), that of {kinds[1]} attention to {names[1]}, "
        f"{100 * far[1]:.2g} % away. Our models' risk is {risks[0]:.3g} ({kinds[0]}) and "
        f"{risks[1]:.3g} ({kinds[1]}) times that of the ridge regression fitted to them. "
        f"a to c: layer t beside step t, means of {dataset.sizes['run']} runs with {level()} "
        f"intervals; parameters are fitted, on other prompts, to each run's prediction, for ridge "
        f"to that of each layer. "
        f"{missing} numbers left out as not finite. d = {task.d}, "
        f"n = {max(task.lengths)}, noise {task.noise_std:g}."
    )
