"""Risks of trained layers over tuned descent's, and where the covariance turns."""

import numpy as np

from experiments.descent.depth import claims
from experiments.descent.depth.claims import CONVERGED, ENOUGH
from experiments.descent.depth.config import COVARIANCES
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.store import parts, results

TRAINED, TOP = style.METHOD["linear"], 30.0
WORSE = 1.1  # a risk ratio from which on a stack is clearly above descent
LINES = {"gradient descent": "descent", "preconditioned": "preconditioned descent", "GD++": "GD++"}
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four"}


def plot(dataset):
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    for ax, name in zip(axes, COVARIANCES, strict=True):
        risks(ax, dataset.sel(covariance=name))
        ax.set_title(f"{name.capitalize()}: most beat descent")
    axes[0].legend(loc="lower left")
    return figure


def appendix(dataset):
    """Every stack where each prompt has a basis of its own."""
    figure, (ax,) = style.figure(3.25, 2.6, first="c")
    part = parts.part(dataset, "turned")
    style.log_axes(ax, y=True)
    style.line(ax, part.depth, part.exact_risk, color=style.BLACK, label="best steps, exactly")
    for x, runs in zip(part.depth.values, part.trained_risk.values, strict=True):
        label, places = "trained" if x == 1 else None, np.linspace(x - 0.1, x + 0.1, len(runs))
        ax.plot(places, runs, ls="", label=label, **TRAINED)
    ax.set(xlabel="layers, or steps", ylabel="excess risk", xticks=part.depth)
    ax.set_title("Most stacks beat the best steps")
    ax.legend(loc="center left")
    return figure


def risks(ax, dataset):
    """Every stack beside tuned algorithms, and below each depth how many stacks have converged."""
    depth, descent = dataset.depth.values, dataset.algorithm_risk.sel(algorithm="gradient descent")
    stacks = claims.numbers(dataset)
    ratios = stacks.risk_ratios("gradient descent").transpose("depth", "run").values
    converged = stacks.converged.transpose("depth", "run").values
    style.log_axes(ax, y=True)
    for algorithm, method in LINES.items():
        line = dataset.algorithm_risk.sel(algorithm=algorithm) / descent
        if algorithm != "gradient descent" and np.allclose(line, 1):
            continue  # whitening changes nothing where the covariance is the identity
        color = style.METHOD[method]["color"]
        style.line(ax, depth, line, color=color)
        direct_label(ax, depth[-1], line[-1].item(), algorithm, color, (6, 0))
    ax.set_ylim(min(ax.get_ylim()[0], ratios.min() / 2), TOP)
    points = dict(ls="", **TRAINED)
    for x, row, kept in zip(depth, ratios, converged, strict=True):
        labels = ("trained, converged", "trained, not converged") if x == depth[0] else (None, None)
        ax.plot(np.full(kept.sum(), x + 0.06), row[kept], label=labels[0], **points)
        ax.plot(np.full(sum(~kept), x - 0.06), row[~kept], mfc="white", label=labels[1], **points)
        above = row[~(row <= TOP)]
        if len(above):
            ax.plot(x - 0.06, TOP, "^", ms=5, mfc="white", color=TRAINED["color"], clip_on=False)
            text = f"{len(above)} above, up to {above.max():.0e}"
            direct_label(ax, x - 0.06, TOP, text, TRAINED["color"], (-6, -1))
    counts = [f"{x}\n{sum(kept)} of {len(kept)}" for x, kept in zip(depth, converged, strict=True)]
    ax.set_xticks(depth, counts, fontsize=7)
    ax.set(xlim=(depth[0] - 0.3, depth[-1] + 1.1), ylabel="excess risk / tuned descent's")
    ax.set_xlabel("layers, or steps; below: how many converged")


def caption(dataset) -> str:
    config, stacks = results.config_of(dataset), claims.numbers(dataset)
    judged = {x: stacks.over_descent("identity", x) for x in claims.DEPTHS}
    medians = {x: np.median(runs) for x, runs in judged.items() if runs is not None}
    headline = "No depth has enough converged stacks to judge"
    if medians:
        first, last = min(medians), max(medians)
        headline = (
            f"Without noise the median converged stack has {medians[first]:.2f} times the risk of "
            f"tuned descent with {NUMBERS[first]} layer and step, and {medians[last]:.2g} times "
            f"with {NUMBERS[last]} (identity covariance)"
        )
    converged = stacks.risk_ratios("gradient descent").where(stacks.converged)
    worse = float((converged > WORSE).sum() / stacks.converged.sum())
    diverged = int((~claims.ended(dataset)).sum())
    return (
        f"{headline}. {worse:.0%} of converged stacks are more than {WORSE - 1:.0%} worse. A stack "
        "has converged if a Gauss-Newton step changes its risk by less than "
        f"{CONVERGED:.0%}; we judge depths where {ENOUGH} of {config.runs} have. Stacks counted "
        f"at the top explode on rare prompts. {diverged} trainings diverged."
    )
