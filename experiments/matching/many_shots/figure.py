"""Errors against the number of demonstrations, divided by it and not, and what is judged."""

from experiments.matching.many_shots import claims
from experiments.matching.many_shots.config import ALL
from experiments.matching.many_shots.panels import (
    name_fixed,
    name_normalised,
    plot_classes,
    plot_fixed,
    plot_normalised,
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
    plot_normalised(axes[0], dataset, config.noise_std)
    axes[0].set_title("divided by their number (1/n)")
    name_normalised(axes[0], dataset.sel(noise=config.noise_std), config)
    plot_fixed(axes[1], dataset, config.noise_std)
    axes[1].set_title(f"divided by {claims.trained_length(config)} always (fixed)")
    name_fixed(axes[1], dataset.sel(noise=config.noise_std), config)
    plot_normalised(axes[2], dataset, 0.0)
    axes[2].set_title("1/n, noise 0")
    plot_classes(axes[3], dataset)
    plot_judged(axes[4], dataset)
    return figure


def appendix(dataset):
    """What the figure leaves out at the other noises, and the fixed divisor there."""
    config = results.config_of(dataset)
    others = other_noises(config)
    rest = [noise for noise in others if noise]
    figure, axes = style.figure(6.75, 2.7, (1, len(rest) + len(others)), first="f")
    for ax, noise in zip(axes, rest, strict=False):
        plot_normalised(ax, dataset, noise)
        ax.set_title(f"1/n, noise {noise:g}")
    for ax, noise in zip(axes[len(rest) :], others, strict=True):
        plot_fixed(ax, dataset, noise)
        name_fixed(ax, dataset.sel(noise=noise), config)
        ax.set_title(f"fixed, noise {noise:g}")
    return figure


def other_noises(config) -> list[float]:
    return [noise for noise in config.noises if noise != config.noise_std]


def plot_judged(ax, dataset):
    style.log_axes(ax, x=True)
    judged_panel.rows(ax, *evidence(claims, dataset), (1e-3, 1e5), ROWS)
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="ratio of errors, or of numbers", title="what is judged")


def caption(dataset) -> str:
    config, n = results.config_of(dataset), claims.trained_length(results.config_of(dataset))
    left = [float(claims.growth(dataset, model).median("run")) for model in ALL]
    missing = style.missing(dataset.error) + style.missing(dataset.softmax)
    far = [f"{ratio:.2g}" for ratio in claims.trained_bayes_ratios(dataset)]
    return (
        f"Demonstrations beyond the {n} of training leave {min(left):.2g} to {max(left):.2g} of "
        "the error if attention divides by their number; with a fixed divisor linear attention "
        f"overshoots. At {n} demonstrations descent, linear and softmax attention have "
        f"{', '.join(far)} times the Bayes rule's error. Softmax ends at {config.softmax_most}, "
        f"for its cost is quadratic. Dots in b are the error of predicting 0. a to c show medians "
        f"and middle 80 % of {config.runs} runs, d means and {level()} intervals. "
        f"{missing} errors were not finite."
    )
