"""Errors against the number of demonstrations, divided by it and not, and what is judged."""

from experiments.matching.many_shots import claims
from experiments.matching.many_shots.config import ALL, task_of
from experiments.matching.many_shots.panels import (
    classes,
    fixed,
    name_fixed,
    name_normalised,
    normalised,
)
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

# The judged rows, from the top.
ROWS = (
    *("descent_normalised", "descent_fixed", "descent_bayes"),
    *("linear_normalised", "linear_fixed", "linear_bayes"),
    *("softmax", "threshold"),
)


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.7, 2.6), ((1, 1), (3, 3, 4)))
    normalised(axes[0], dataset, config.noise_std)
    axes[0].set_title("divided by their number (1/n)")
    name_normalised(axes[0], dataset.sel(noise=config.noise_std), config)
    fixed(axes[1], dataset, config.noise_std)
    axes[1].set_title(f"divided by {claims.trained_length(config)} always (fixed)")
    name_fixed(axes[1], dataset.sel(noise=config.noise_std), config)
    normalised(axes[2], dataset, 0.0)
    axes[2].set_title("1/n, noise 0")
    classes(axes[3], dataset)
    judged(axes[4], dataset)
    return figure


def appendix(dataset):
    """What the figure leaves out at the other noises, and the fixed divisor there."""
    config = results.config_of(dataset)
    others = other_noises(config)
    rest = [noise for noise in others if noise]
    figure, axes = style.figure(6.75, 2.7, (1, len(rest) + len(others)), first="f")
    for ax, noise in zip(axes, rest, strict=False):
        normalised(ax, dataset, noise)
        ax.set_title(f"1/n, noise {noise:g}")
    for ax, noise in zip(axes[len(rest) :], others, strict=True):
        fixed(ax, dataset, noise)
        name_fixed(ax, dataset.sel(noise=noise), config)
        ax.set_title(f"fixed, noise {noise:g}")
    return figure


def other_noises(config) -> list[float]:
    return [noise for noise in config.noises if noise != config.noise_std]


def judged(ax, dataset):
    style.log_axes(ax, x=True)
    judged_panel.rows(ax, *evidence(claims, dataset), (1e-3, 1e5), ROWS)
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="ratio of errors, or of numbers", title="what is judged")


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    n = claims.trained_length(config)
    left = [float(claims.growth(dataset, model).median("run")) for model in ALL]
    missing = style.missing(dataset.error) + style.missing(dataset.softmax)
    far = [f"{ratio:.2g}" for ratio in claims.trained_bayes_ratios(dataset)]
    few, many = config.class_shots
    rows = ("descent_classes", "linear_classes", "softmax_classes")
    lost = [f"{100 * float(samples[id].mean()):+.2g}" for id in rows]
    return (
        f"They leave {min(left):.2g} to {max(left):.2g} of the "
        "error if attention divides by their number; with a fixed divisor linear attention "
        f"overshoots. a: demonstrations beyond the {n} of training, noise "
        f"{config.noise_std:g}; b: the same weights divide by {n} always; dots: the error "
        "of predicting 0. c: as a; trained stacks gain until their bias is left; without noise "
        f"the Bayes rule does not err. d: two classes, noise {config.noise_std:g}; from {few} to "
        f"{many} demonstrations descent, linear and softmax change by {', '.join(lost)} points of "
        f"per cent (judged). e: {judged_panel.KEY}. Median of {config.runs} runs and the middle "
        f"80 % of them; d: means, {level()} intervals. At {n} descent of {config.depth} steps, "
        f"trained linear and softmax attention have {', '.join(far)} times the Bayes rule's "
        f"median error. Softmax only up to {config.softmax_most}: its cost is quadratic. {missing} "
        f"errors left out as not finite. d = {task_of(config).d}. Appendix: f: as a; g, h: as b."
    )
