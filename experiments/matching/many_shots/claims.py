"""What `many_shots` judges: errors at many demonstrations, and where a fixed divisor is unsafe.

Errors are medians over prompts, then over runs: linear stacks explode on rare prompts.
"""

from functools import partial

import numpy as np

from experiments.matching.many_shots.config import ALL, LINEAR, task_of
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import results

A3 = "A3 (2506.04579), section 4.6"
NAMES = {
    "descent": "a constructed descent",
    "linear": "our trained linear attention",
    "softmax": "our trained softmax attention",
}
BETTER = "models trained to the end, at d = 8; they were brief"


def trained_length(config) -> int:
    return max(task_of(config).lengths)


def growth(dataset, model, scaling="by n"):  # [run]
    """The error at the most demonstrations that a model is given, over that at the length of
    training."""
    config = results.config_of(dataset)
    error = dataset.softmax.rename(few="shots")
    if model != "softmax":
        error = dataset.error.sel(noise=config.noise_std, model=model, scaling=scaling)
    return error.sel(shots=max(error.shots.values)) / error.sel(shots=trained_length(config))


def wrong_share(dataset, model):  # [run, shots]
    """The share of wrong classes."""
    if model == "softmax":
        return dataset.softmax_wrong.transpose("run", "few").rename(few="shots")
    return dataset.wrong.sel(model=model).transpose("run", "shots")


def trained_bayes_ratios(dataset):  # of descent, linear and softmax
    """How far from the best at the length of training: median errors over the Bayes rule's."""
    config = results.config_of(dataset)
    noisy = dataset.sel(noise=config.noise_std)
    n = trained_length(config)
    bayes = float(noisy.bayes.sel(shots=n).median("run"))
    linear = noisy.error.sel(shots=n, scaling="by n").median("run")
    softmax = float(dataset.softmax.sel(few=n).median("run"))
    return [*(float(linear.sel(model=model)) / bayes for model in LINEAR), softmax / bayes]


def predicted_limit(dataset):  # [R]
    """The number of demonstrations from which η λ_max(XᵀX), divided by n of training, exceeds 2."""
    return _crossing(dataset.shots.values, dataset.largest.transpose("run", "shots"), 2.0)


def long_bayes_ratio(dataset, model):  # [run]
    """The error over the Bayes rule's."""
    config = results.config_of(dataset)
    end = dataset.sel(noise=config.noise_std, shots=max(config.shots))
    return end.error.sel(model=model, scaling="by n") / end.bayes


def classes_lost(dataset, model):  # [run]
    few, many = results.config_of(dataset).class_shots
    share = wrong_share(dataset, model)
    return share.sel(shots=many) - share.sel(shots=few)


def error_of_zero(d: int) -> float:
    """The median squared error of predicting 0: of (w·x)², with w and x standard normal."""
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 100_000, d))
    return float(np.median((w * x).sum(1) ** 2))


def _crossing(shots, values, level):  # [shots], [R, shots] -> [R]
    """The first number of demonstrations at which values reach a level, between grid points by a
    power law; the last number where they never do."""

    def number(row):
        above = np.flatnonzero(row >= level)
        if len(above) == 0:
            return shots[-1]
        j = above[0]
        if j == 0:
            return shots[0]
        share = np.log(level / row[j - 1]) / np.log(row[j] / row[j - 1])
        return shots[j - 1] * (shots[j] / shots[j - 1]) ** share

    return np.array([number(row) for row in np.asarray(values, float)])


def statements(config) -> tuple[Statement, ...]:
    n, most, (few, many) = trained_length(config), max(config.shots), config.class_shots
    longest = max(count for count in config.shots if count <= config.softmax_most)
    error = "the error, median over prompts,"
    median = partial(
        Statement,
        statistic="median",
        revision=BETTER,
        redrawn=f"{config.runs} fresh runs, 12 before",
    )
    return (
        median(
            "normalised",
            f"{A3}, open question",
            "{subject} gains from demonstrations beyond the trained length",
            f"{error} at {{most}} demonstrations over that at {n}",
            at_most=1.0,
            sample=lambda d, model: growth(d, model).values,
            cells=grid("descent_normalised linear_normalised softmax", model=ALL),
            words=lambda model: (
                dict(subject="Our trained softmax attention", most=longest)
                if model == "softmax"
                else dict(subject=f"Divided by n, {NAMES[model]}", most=most)
            ),
            message="Divided by n, all three stacks gain from demonstrations beyond the trained "
            "length",
        ),
        median(
            "overshoots",
            f"derived here, on {A3}, open question",
            "Divided by the trained length, {name} overshoots",
            f"{error} at {most} demonstrations over that at {n}",
            at_least=10.0,
            sample=lambda d, model: growth(d, model, "fixed").values,
            cells=grid("descent_fixed linear_fixed", model=LINEAR),
            words=lambda model: dict(name=NAMES[model]),
            message="Divided by the trained length, a constructed descent and our trained linear "
            "attention overshoot",
        ),
        median(
            "bayes",
            f"modelled on {A3}",
            "Divided by n, {name} uses many demonstrations almost as the Bayes rule does",
            f"{error} over the Bayes rule's at {most}",
            at_most=2.0,
            sample=lambda d, model: long_bayes_ratio(d, model).values,
            cells=grid("descent_bayes linear_bayes", model=LINEAR),
            words=lambda model: dict(name=NAMES[model]),
            message="Divided by n, a constructed descent and our trained linear attention use many "
            "demonstrations almost as the Bayes rule does",
        ),
        Statement(
            "classes",
            "{source}",
            f"From {few} to {many} demonstrations {{name}} loses in classification",
            f"the share of wrong classes at {many} less that at {few}, on the same prompts",
            at_least=0.0,
            note="two classes, the sign of w·x + noise; the query has none; the models are trained "
            "on regression",
            redrawn=f"{config.runs} fresh runs of twice the prompts, 9 before",
            sample=lambda d, model: classes_lost(d, model).values,
            cells=grid("descent_classes linear_classes softmax_classes", model=ALL),
            words=lambda model: dict(
                name=NAMES[model],
                source=f"modelled on {A3}" if model == "descent" else f"{A3}, in our setting",
            ),
            message=f"From {few} to {many} demonstrations all three stacks lose in classification",
        ),
    )
