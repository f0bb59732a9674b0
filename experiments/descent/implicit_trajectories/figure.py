"""Distances of trained layers from the steps of five algorithms."""

from experiments.descent.implicit_trajectories.claims import (
    DISTANCE,
    distances,
    last_distance,
    nearest,
)
from experiments.descent.implicit_trajectories.config import MODELS
from experiments.descent.specs import spec_of
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

LOOKS = {
    "GD": style.METHOD["descent"],
    "GD++": style.METHOD["GD++"],
    "preconditioned GD": style.METHOD["preconditioned descent"],
    "Newton": style.METHOD["Newton"],
    "ridge": style.METHOD["ridge"],
}


def plot(dataset):
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    for ax, model in zip(axes, MODELS, strict=True):
        layer_distances(ax, dataset, model)
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
    ax.set(ylim=(DISTANCE / 20, DISTANCE * 20))
    ax.set_title(f"{model.capitalize()} nears {nearest(dataset, model)}")
    ax.set_xlim(right=layers[-1] + 0.2)
    ax.plot([layers[-1] - 0.2, layers[-1] + 0.2], [DISTANCE] * 2, color="grey", lw=1.2)
    direct_label(ax, layers[-1] + 0.2, DISTANCE, "bound", "dimgrey", (-2, -2))
    end_labels(ax, ends, [look["color"] for look in LOOKS.values()])


def caption(dataset) -> str:
    config = results.config_of(dataset)
    kinds = list(MODELS)
    names = [nearest(dataset, model) for model in MODELS]
    far = [last_distance(dataset, *pair).mean() for pair in zip(MODELS, names, strict=True)]
    plus_plus = [last_distance(dataset, model, "GD++").mean() for model in MODELS]
    ratios = dataset.risk.mean("run") / dataset.ridge.mean("run")
    risks = [ratios.sel(model=name).item() for name in MODELS]
    task = spec_of(config, MODELS["linear"]).task
    return (
        f"The last layer of {kinds[0]} attention is nearest to {names[0]}, {100 * far[0]:.2g} % "
        f"away; GD++ is {100 * plus_plus[0]:.2g} % away. {kinds[1].capitalize()} attention is "
        f"nearest to {names[1]}{', too' * (names[0] == names[1])}, {100 * far[1]:.2g} % away; "
        f"GD++ is {100 * plus_plus[1]:.2g} % away. The grey stroke counts as near. Our models' "
        f"risk is {risks[0]:.3g} ({kinds[0]}) and {risks[1]:.3g} ({kinds[1]}) times that of the "
        f"ridge regression fitted to them. Points are means of {dataset.sizes['run']} runs with "
        f"{level()} intervals. Parameters are fitted on other prompts. "
        f"d = {task.d}, n = {max(task.lengths)}."
    )
