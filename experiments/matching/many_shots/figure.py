"""Errors against the number of demonstrations, divided by it and not."""

from experiments.matching.many_shots import claims
from experiments.matching.many_shots.config import ALL
from experiments.matching.many_shots.panels import (
    name_fixed,
    name_normalised,
    plot_fixed,
    plot_normalised,
)
from lsa_lab.harness.draw import style
from lsa_lab.store import results


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    plot_normalised(axes[0], dataset, config.noise_std)
    axes[0].set_title("divided by their number, more help")
    name_normalised(axes[0], dataset.sel(noise=config.noise_std), config)
    plot_fixed(axes[1], dataset, config.noise_std)
    axes[1].set_title(f"divided by {claims.trained_length(config)} always, more explode")
    name_fixed(axes[1], dataset.sel(noise=config.noise_std), config)
    return figure


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
        f"for its cost is quadratic. Dots in b are the error of predicting 0. Lines show medians "
        f"and middle 80 % of {config.runs} runs. "
        f"{missing} errors were not finite."
    )
