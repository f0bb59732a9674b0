"""Errors against the number of demonstrations, divided by it and not."""

import numpy as np

from experiments.matching.many_shots import claims
from experiments.matching.many_shots.config import ALL, LINEAR, SCALINGS
from experiments.matching.trained import task_of, trained_length
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
    config, at_noise = results.config_of(dataset), noisy(dataset)
    points(ax, at_noise, BY_N)
    runs = dataset.softmax.transpose("run", "few")
    style.band(ax, dataset.few.values, runs, **style.METHOD["softmax"])
    style.line(ax, dataset.shots, at_noise.bayes.median("run"), style=":")
    axes_of(ax, dataset)
    ax.set(ylim=(1e-5, 1), title="Divided by their number, more help")
    # The models and the Bayes rule have their names beside points that leave room.
    shots, few = max(config.shots), max(at_noise.few.values)
    middle = int(at_noise.shots.values[at_noise.sizes["shots"] // 2])
    error = at_noise.error.sel(scaling=BY_N).quantile([0.1, 0.9], "run")
    low = float(error.sel(model="descent", shots=shots)[0])
    high = float(error.sel(model="linear", shots=shots)[1])
    names = {
        "descent": (shots, low, (0, -3)),
        "linear": (shots, high, (0, 2)),
        "softmax": (few, float(at_noise.softmax.sel(few=few).median("run")), (0, 14)),
    }
    for name, (x, y, offset) in names.items():
        direct_label(ax, x, y, name, style.METHOD[name]["color"], offset)
    bayes = float(at_noise.bayes.sel(shots=middle).median("run"))
    direct_label(ax, middle, bayes, "Bayes rule", style.BLACK, (-3, -3))
    n = trained_length(config)
    direct_label(ax, n, 0.5, f"trained on {n}", "dimgrey")


def plot_fixed(ax, dataset):
    """Errors if attention divides by the number in training, on a scale that holds them all; from
    where on that is unsafe, and what predicting 0 costs."""
    config, at_noise = results.config_of(dataset), noisy(dataset)
    limit, zero = unsafe_from(dataset), error_of_zero(task_of(config).d)
    points(ax, at_noise, FIXED)
    axes_of(ax, dataset)
    ax.set(ylim=(1e-4, TOP), yticks=[1, 1e10, 1e20, 1e30, 1e40, 1e50])
    ax.set_title("With a fixed divisor they explode")
    ax.axvline(limit, color="grey", lw=0.8, ls="-.")
    ax.axhline(zero, color="grey", lw=0.8, ls=":")
    end, error = config.shots[-2], at_noise.error.sel(scaling=FIXED).median("run")
    unsafe = rf"$\eta\,\lambda_{{\max}}(X^T X)/{trained_length(config)}$ passes 2"
    for name, offset in (("linear", (-6, 0)), ("descent", (0, -5))):
        y = min(float(error.sel(model=name, shots=end)), 1e48)  # the top of the panel
        direct_label(ax, end, y, name, style.METHOD[name]["color"], offset)
    direct_label(ax, limit, 1e27, unsafe, "dimgrey")
    direct_label(ax, max(config.shots), zero, "no demonstrations", "dimgrey", (-3, -0.1))


def unsafe_from(dataset) -> float:
    """The number of demonstrations from which η λ_max(XᵀX), divided by n of training, exceeds 2:
    between two of the grid by a power law, in the median of the runs."""
    logs = np.log(dataset.shots.values), np.log(dataset.largest.transpose("run", "shots").values)
    return float(np.exp(np.median([np.interp(np.log(2), row, logs[0]) for row in logs[1]])))


def error_of_zero(d: int) -> float:
    """The median squared error of predicting 0: of (w·x)², with w and x standard normal."""
    w, x = np.random.default_rng(0).standard_normal((2, 100_000, d))
    return float(np.median((w * x).sum(1) ** 2))


def above(at_noise, model) -> np.ndarray:
    """The lengths at which a model's median lies above panel b."""
    error = at_noise.error.sel(model=model, scaling=FIXED).median("run")
    return at_noise.shots.values[(error > TOP).values]


def points(ax, at_noise, scaling):
    for model in LINEAR:
        runs = at_noise.error.sel(model=model, scaling=scaling).transpose("run", "shots")
        style.band(ax, at_noise.shots.values, runs, **style.METHOD[model])


def axes_of(ax, dataset):
    shots = dataset.shots.values
    ax.axvline(trained_length(results.config_of(dataset)), color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True, y=True, ticks=shots[::3])
    ax.set(xlabel="demonstrations", ylabel="squared error, median")


def caption(dataset) -> str:
    config, n = results.config_of(dataset), trained_length(results.config_of(dataset))
    left = [float(claims.growth(dataset, model).median("run")) for model in ALL]
    high = [len(above(noisy(dataset), model)) for model in LINEAR]
    names = [model for model, count in zip(LINEAR, high, strict=True) if count] or ["no"]
    far = [f"{ratio:.2g}" for ratio in claims.trained_bayes_ratios(dataset)]
    return (
        f"Demonstrations beyond the {n} of training leave {min(left):.2g} to {max(left):.2g} of "
        "the error if attention divides by their number; with a fixed divisor linear attention "
        f"overshoots. At {n} demonstrations descent, linear and softmax attention have "
        f"{', '.join(far)} times the Bayes rule's error. Softmax ends at {config.softmax_most}, "
        "for its cost is quadratic. The dotted line in b predicts 0; "
        f"{sum(high)} points of {' and '.join(names)} attention lie above panel b. Points are "
        f"medians, bars the middle 80 % of {config.runs} runs. "
    )
