"""Errors against the number of demonstrations, divided by it and not."""

import numpy as np

from experiments.matching.configs import task_of, trained_length
from experiments.matching.many_shots import claims
from experiments.matching.many_shots.config import ALL, LINEAR, SCALINGS
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.store import results

BY_N, FIXED = SCALINGS
TOP = 1e50  # of panel b


def plot(dataset):
    return style.panels(dataset, 2.9, plot_normalised, plot_fixed)


def noisy(dataset):
    """The test prompts whose labels are as noisy as those in training."""
    return dataset.sel(noise=results.config_of(dataset).noise_std)


def plot_normalised(ax, dataset):
    """Errors if attention divides by the number of demonstrations, beside the Bayes rule's."""
    points(ax, dataset, BY_N)
    runs = dataset.softmax.transpose("run", "few")
    style.band(ax, 1.12 * dataset.few.values, runs, "softmax", **style.METHOD["softmax"])
    style.line(ax, dataset.shots, noisy(dataset).bayes.median("run"), "Bayes rule", style=":")
    n = trained_length(results.config_of(dataset))
    direct_label(ax, n, 0.5, f"trained on {n}", "dimgrey")
    ax.set(ylim=(1e-5, 1), title="Divided by their number, more help")
    ax.legend(loc="lower left", bbox_to_anchor=(0.06, 0))


def plot_fixed(ax, dataset):
    """Errors if attention divides by the number in training, on a scale that holds them all; from
    where on that is unsafe, and what predicting 0 costs."""
    config = results.config_of(dataset)
    limit, zero = unsafe_from(dataset), error_of_zero(task_of(config).d)
    points(ax, dataset, FIXED)
    ax.set(ylim=(1e-4, TOP), yticks=[1, 1e10, 1e20, 1e30, 1e40, 1e50])
    ax.set_title("With a fixed divisor they explode")
    ax.axvline(limit, color="grey", lw=0.8, ls="-.")
    ax.axhline(zero, color="grey", lw=0.8, ls=":")
    unsafe = rf"$\eta\,\lambda_{{\max}}(X^T X)/{trained_length(config)}$ passes 2"
    direct_label(ax, limit, 1e27, unsafe, "dimgrey")
    direct_label(ax, max(config.shots), zero, "no demonstrations", "dimgrey", (-3, -0.1))
    ax.legend(loc="upper right")


def unsafe_from(dataset) -> float:
    """The number of demonstrations from which η λ_max(XᵀX), divided by n of training, exceeds 2:
    between two of the grid by a power law, in the median of the runs."""
    logs = np.log(dataset.shots.values), np.log(dataset.largest.transpose("run", "shots").values)
    return float(np.exp(np.median([np.interp(np.log(2), row, logs[0]) for row in logs[1]])))


def error_of_zero(d: int) -> float:
    """The median squared error of predicting 0: of (w·x)², with w and x standard normal."""
    w, x = np.random.default_rng(0).standard_normal((2, 100_000, d))
    return float(np.median((w * x).sum(1) ** 2))


def points(ax, dataset, scaling):
    shots, error = dataset.shots.values, noisy(dataset).error.sel(scaling=scaling)
    for model, shift in zip(LINEAR, (1.0, 1.06), strict=True):  # side by side
        runs = error.sel(model=model).transpose("run", "shots")
        style.band(ax, shift * shots, runs, model, **style.METHOD[model])
    ax.axvline(trained_length(results.config_of(dataset)), color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True, y=True, ticks=shots[::3])
    ax.set(xlabel="demonstrations", ylabel="squared error, median")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    n, left = trained_length(config), [claims.growth(dataset, model).median("run") for model in ALL]
    fixed = noisy(dataset).error.sel(scaling=FIXED).median("run")
    high = {model: int((fixed.sel(model=model) > TOP).sum()) for model in LINEAR}
    names = [model for model, count in high.items() if count] or ["no"]
    descent, linear, softmax = (f"{ratio:.2g}" for ratio in claims.trained_bayes_ratios(dataset))
    return (
        f"Demonstrations beyond the {n} of training leave {float(min(left)):.2g} to "
        f"{float(max(left)):.2g} of the error if attention divides by their number. With a fixed "
        f"divisor linear attention overshoots. At {n} demonstrations descent has {descent} times "
        f"the Bayes rule's error, linear attention {linear} and softmax attention {softmax}. "
        f"Softmax ends at {config.softmax_most}, for its cost is quadratic. In b "
        f"{sum(high.values())} points of {' and '.join(names)} attention lie above the panel. "
        f"Points are medians, bars the middle 80 % of {config.runs} runs. "
    )
