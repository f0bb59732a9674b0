"""Risks of trained layers beside tuned algorithms, and the shapes of what they learn."""

from experiments.descent.depth.claims import predicted_shapes
from experiments.descent.depth.config import COVARIANCES
from lsa_lab import results
from lsa_lab.harness import style

DASHES = {"gradient descent": "-", "preconditioned": "--", "GD++": ":"}


def plot(dataset):
    figure, axes = style.figure(9.0, 3.4, (1, 3))
    for ax, name in zip(axes, COVARIANCES, strict=False):
        risks(ax, dataset.sel(covariance=name))
        ax.set_title(f"{name} covariance")
        ax.legend()
    shapes(axes[2], dataset)
    return figure


def risks(ax, dataset):
    depth = dataset.depth.values
    for algorithm, dash in DASHES.items():
        risk = dataset.algorithm_risk.sel(algorithm=algorithm)
        style.line(ax, depth, risk, label=f"{algorithm}, tuned", style=dash)
    style.band(ax, depth, dataset.trained_risk.transpose("run", "depth"), label="trained layers")
    style.log_axes(ax, y=True)
    # A stack that explodes on one rare prompt would press all the others into a line.
    ax.set_ylim(top=3 * float(dataset.algorithm_risk.max()))
    ax.set(xlabel="layers, or steps", ylabel="excess risk", xticks=depth)


def shapes(ax, dataset):
    depth = dataset.depth.values
    for name, marker, aside in zip(COVARIANCES, style.MARKERS, (-0.1, 0.1), strict=False):
        for matrix, color in zip("AB", style.COLOURS, strict=False):
            x = depth + aside + (0.05 if matrix == "B" else -0.05)  # side by side
            distances = predicted_shapes(dataset, name, matrix)
            style.band(ax, x, distances, f"{matrix}, {name}", color=color, marker=marker)
    criterion = results.config_of(dataset).distance
    ax.axhline(criterion, color="grey", lw=0.8, ls="--", label="criterion")
    style.log_axes(ax, y=True)
    ax.set(xlabel="layers", ylabel="distance to the predicted shape", xticks=depth)
    ax.set_title("worst learned matrix")
    ax.legend()


def caption(dataset) -> str:
    config, names = results.config_of(dataset), ["gradient descent", "GD++"]
    deepest = dataset.isel(depth=-1).sel(covariance="identity")
    ratios = deepest.trained_risk.median() / deepest.algorithm_risk.sel(algorithm=names)
    descent, plus_plus = ratios.values
    return (
        f"At {config.max_depth} layers and identity covariance the median trained stack has "
        f"{descent:.2g} times the risk of tuned gradient descent and {plus_plus:.2g} times that of "
        f"tuned GD++. Lines: algorithms with tuned steps. Points: median of {config.runs} trained "
        f"stacks and the middle 80 % of them; {style.missing(dataset.trained_risk)} left out as "
        f"not finite; a bar that leaves the panel is a stack that explodes on a rare prompt. "
        f"d = {config.d}, n = {config.n}."
    )
