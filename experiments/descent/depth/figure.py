"""Risks of trained layers over tuned descent's, and the shapes that they learn."""

import numpy as np

from experiments.descent.depth import claims
from experiments.descent.depth.claims import DISTANCE, SETTLED, SETTLED_RUNS
from experiments.descent.depth.config import COVARIANCES
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

TRAINED, TOP = style.METHOD["linear"], 30.0
WORSE = 1.1  # a risk ratio from which on a stack is clearly above descent
LINES = {"gradient descent": "descent", "preconditioned": "preconditioned descent", "GD++": "GD++"}


def plot(dataset):
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    for ax, name in zip(axes, COVARIANCES, strict=True):
        risks(ax, dataset.sel(covariance=name))
        ax.set_title(f"{name.capitalize()}: most beat descent")
    axes[0].legend(loc="lower left")
    return figure


def appendix(dataset):
    """Distances of the learned matrices from the predicted shapes, and what tied layers lose; what
    depth gains where the covariance turns."""
    figure, (left, right) = style.figure(6.75, 2.6, (1, 2), first="c")
    shapes(left, dataset)
    tied_over_free(right, dataset)
    second, (ax,) = style.figure(3.25, 2.6, first="e")
    turned_risks(ax, dataset)
    return figure, second


def risks(ax, dataset):
    """Every stack beside tuned algorithms, and below each depth how many stacks have converged."""
    depth, descent = dataset.depth.values, dataset.algorithm_risk.sel(algorithm="gradient descent")
    stacks = claims.numbers(dataset)
    ratios = stacks.descent.transpose("depth", "run").values
    at_rest = stacks.settled.transpose("depth", "run").values
    style.log_axes(ax, y=True)
    for algorithm, method in LINES.items():
        line = dataset.algorithm_risk.sel(algorithm=algorithm) / descent
        if algorithm != "gradient descent" and np.allclose(line, 1):
            continue  # whitening changes nothing where the covariance is the identity
        color = style.METHOD[method]["color"]
        style.line(ax, depth, line, color=color)
        direct_label(ax, depth[-1], line[-1].item(), algorithm, color, (6, 0))
    ax.set_ylim(min(ax.get_ylim()[0], ratios.min() / 2), TOP)
    for x, row, kept in zip(depth, ratios, at_rest, strict=True):
        ax.plot(np.full(kept.sum(), x + 0.06), row[kept], ls="", **TRAINED)
        ax.plot(np.full(sum(~kept), x - 0.06), row[~kept], ls="", mfc="white", **TRAINED)
        mark_exploded(ax, x - 0.06, row)
    ax.plot([], [], ls="", label="trained, converged", **TRAINED)
    ax.plot([], [], ls="", mfc="white", label="trained, not converged", **TRAINED)
    names = [
        f"{x}\n{count} of {len(at_rest[0])}" for x, count in zip(depth, at_rest.sum(1), strict=True)
    ]
    ax.set_xticks(depth, names, fontsize=7)
    ax.set(
        xlabel="layers, or steps; below: how many converged", ylabel="excess risk / tuned descent's"
    )
    ax.set_xlim(depth[0] - 0.3, depth[-1] + 1.1)


def mark_exploded(ax, x, ratios):
    """How many stacks lie above the axis, and where the farthest does."""
    above = ratios[~(ratios <= TOP)]
    if len(above):
        ax.plot(x, TOP, "^", ms=5, mfc="white", color=TRAINED["color"], clip_on=False)
        text = f"{len(above)} above, up to {above.max():.0e}"
        direct_label(ax, x, TOP, text, TRAINED["color"], (-6, -1))


def shapes(ax, dataset):
    depth, distances = dataset.depth.values, claims.numbers(dataset).shapes
    ends = distances.isel(depth=-1).median("run")
    for name, color, marker in zip(COVARIANCES, (style.BLACK, "0.5"), "os", strict=True):
        for matrix, aside, face in (("A", -0.06, color), ("B", 0.06, "white")):
            # The last layer's B moves nothing that is read: one layer has none to speak of.
            x = depth[1:] if matrix == "B" else depth
            runs = distances.sel(matrix=matrix, covariance=name, depth=x).transpose("run", "depth")
            look = dict(color=color, fmt=marker, mfc=face, capsize=2)
            style.median_points(ax, x + aside, runs, **look)
            end, both = ends.sel(matrix=matrix, covariance=name).item(), ends.sel(covariance=name)
            up = 1 if end == both.max() else -1
            direct_label(ax, depth[-1], end, f"{matrix}, {name}", color, (8, up))
    ax.axhline(DISTANCE, color="grey", lw=0.8, ls="--")
    direct_label(ax, depth[-1] + 1.1, DISTANCE, "bound", "dimgrey", (-2, -2))
    style.log_axes(ax, y=True)
    ax.set(xlabel="layers", ylabel="worst matrix's distance to its shape", xticks=depth)
    ax.set(title="Deep stacks miss the predicted shapes", xlim=(depth[0] - 0.3, depth[-1] + 1.1))


def tied_over_free(ax, dataset):
    """Every trained pair beside the best descent of so many steps, by depth and labels' noise."""
    part, trained = parts.part(dataset, "tied"), claims.numbers(dataset).tied_over_free
    exact = part.exact_risk.sel(layers="tied") / part.exact_risk.sel(layers="free")
    places = [(depth, noise) for depth in part.depth.values for noise in part.noise.values]
    low, high = 0.5, 50.0
    bar = float(exact.sel(depth=places[0][0], noise=places[0][1]))
    direct_label(ax, 0, bar, "best descent", style.BLACK, (0, -5))
    for x, (depth, noise) in enumerate(places):
        runs = trained.sel(depth=depth, noise=noise).values
        near = runs[(runs > low) & (runs < high)]
        ax.plot(np.linspace(x - 0.2, x + 0.2, len(near)), near, ls="", **TRAINED)
        ax.plot([x - 0.35, x + 0.35], [exact.sel(depth=depth, noise=noise)] * 2, color=style.BLACK)
        beyond = (high, np.sum(runs >= high), "above", -1), (low, np.sum(runs <= low), "below", 1)
        for y, far, side, up in beyond:
            if far:
                direct_label(ax, x, y, f"{far} {side}", TRAINED["color"], (0, 2 * up))
    style.log_axes(ax, y=True)
    ax.set_ylim(low, high)
    ax.set_xticks(range(len(places)), [f"{d} layers\nnoise {noise:g}" for d, noise in places])
    ax.tick_params(axis="x", labelsize=7)
    ax.set(ylabel="excess risk, tied / free", title="Tied layers lose most without noise")


def turned_risks(ax, dataset):
    """Every stack where each prompt has a basis of its own, and one layer where the basis stays."""
    part = parts.part(dataset, "turned")
    style.log_axes(ax, y=True)
    style.line(ax, part.depth, part.exact_risk, color=style.BLACK, label="best steps, exactly")
    for x, runs in zip(part.depth.values, part.trained_risk.values, strict=True):
        ax.plot(np.linspace(x - 0.1, x + 0.1, len(runs)), runs, ls="", **TRAINED)
    stays, grey = part.unturned_risk.values, TRAINED | dict(color="0.5")
    ax.plot(np.linspace(0.9, 1.1, len(stays)), stays, ls="", **grey)
    ax.plot([], [], ls="", label="trained, basis turns", **TRAINED)
    ax.plot([], [], ls="", label="trained, basis stays", **grey)
    ax.set(xlabel="layers, or steps", ylabel="excess risk", xticks=part.depth)
    ax.set_title("Most stacks beat the best steps")
    ax.legend(loc="center left")


def caption(dataset) -> str:
    config, stacks = results.config_of(dataset), claims.numbers(dataset)
    enough = stacks.settled.sum("run") >= SETTLED_RUNS
    ratio = stacks.descent.where(stacks.settled).median("run").where(enough)
    worse = int((stacks.descent.where(stacks.settled) > WORSE).sum())
    judged = [str(depth) for depth in dataset.depth.values[enough.any("covariance")]] or ["no"]
    two = evidence(claims, dataset)[1]["below_any_two_steps"]
    deep = np.nan if two is None else np.median(two)
    diverged = int(dataset.status.astype(str).str.startswith("diverged").sum())
    return (
        f"Stacks of {' to '.join(dict.fromkeys((judged[0], judged[-1])))} converged layers have in "
        f"the median {ratio.min():.2g} to {ratio.max():.3f} times the risk of as many tuned steps "
        f"of descent. Two layers have {deep:.2g} of the best two steps' risk; "
        f"{worse} converged stacks stay more than {WORSE - 1:.0%} above descent. We judge where "
        f"{SETTLED_RUNS} of {config.runs} converged: a Gauss-Newton step changes their risk by "
        f"less than {SETTLED:.0%}. Stacks counted at the top explode on rare prompts. {diverged} "
        "diverged."
    )
