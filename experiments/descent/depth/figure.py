"""The figure of `depth`, drawn from its result alone."""

from experiments.descent.depth.claims import predicted_shapes
from experiments.descent.depth.tuned import COVARIANCES
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    drawn, axes = style.figure(9.0, 3.4, (1, 3))
    depth = dataset.depth.values
    lines = {"gradient descent": "-", "preconditioned": "--", "GD++": ":"}
    lost = 0
    for ax, name in zip(axes, COVARIANCES, strict=False):
        there = dataset.sel(covariance=name)
        for method, dash in lines.items():
            risk = there.algorithm_risk.sel(algorithm=method)
            style.line(ax, depth, risk, label=f"{method}, tuned", style=dash)
        runs = there.trained_risk.transpose("run", "depth")
        lost += style.band(ax, depth, runs, label="trained layers")
        style.log_axes(ax, y=True)
        # A stack that explodes on one rare prompt would press all the others into a line.
        ax.set_ylim(top=3 * float(there.algorithm_risk.max()))
        ax.set(xlabel="layers, or steps", ylabel="excess risk", xticks=depth)
        ax.set_title(f"{name} covariance")
        ax.legend()
    ax = axes[2]
    for name, marker, aside in zip(COVARIANCES, style.MARKERS, (-0.1, 0.1), strict=False):
        for matrix, color in zip("AB", style.COLOURS, strict=False):
            values = predicted_shapes(dataset.sel(covariance=name), matrix)
            x = depth + aside + (0.05 if matrix == "B" else -0.05)  # side by side
            style.band(ax, x, values, f"{matrix}, {name}", color=color, marker=marker)
    settings = results.config_of(dataset)
    ax.axhline(settings.distance, color="grey", lw=0.8, ls="--", label="criterion")
    style.log_axes(ax, y=True)
    ax.set(xlabel="layers", ylabel="distance to the predicted shape", xticks=depth)
    ax.set_title("worst learned matrix")
    ax.legend()
    deepest = dataset.isel(depth=-1, covariance=0)
    ratio = float(deepest.trained_risk.median() / deepest.algorithm_risk.sel(algorithm="GD++"))
    style.caption(
        drawn,
        f"Lines: algorithms with tuned steps. Points: median of {settings.runs} trained stacks and "
        f"the middle 80 % of them; {lost} left out as not finite; a bar that leaves the panel is a "
        f"stack that explodes on a rare prompt. d = {settings.d}, n = {settings.n}. At "
        f"{depth[-1]} layers and identity covariance the median stack has "
        f"{ratio:.2g} times the risk of GD++.",
    )
    return drawn
