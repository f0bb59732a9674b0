"""How errors grow with the demonstrations, and from how many on a fixed divisor is unsafe."""

import numpy as np

from experiments.matching.many_shots.config import ALL, LINEAR, SCALINGS
from lsa_lab import results


def growth(dataset):  # [run, model, scaling]
    """The error at the most demonstrations over that at the length of training."""
    config = results.config_of(dataset)
    error = dataset.error.sel(noise=config.noise_std).transpose("run", "model", "scaling", "shots")
    return error.sel(shots=max(config.shots)) / error.sel(shots=config.n)


def softmax_growth(dataset):  # [run]
    """``growth`` of softmax attention, up to the most demonstrations that softmax is given."""
    config = results.config_of(dataset)
    error = dataset.softmax
    return error.sel(few=max(dataset.few.values)) / error.sel(few=config.n)


def wrong(dataset, model):  # [run, shots]
    """The share of wrong classes."""
    if model == "softmax":
        return dataset.softmax_wrong.transpose("run", "few").rename(few="shots")
    return dataset.wrong.sel(model=model).transpose("run", "shots")


def over_bayes(dataset):  # of descent, linear and softmax
    """How far from the best at the length of training: median errors over the Bayes rule's."""
    config = results.config_of(dataset)
    noisy = dataset.sel(noise=config.noise_std)
    bayes = float(noisy.bayes.sel(shots=config.n).median("run"))
    linear = noisy.error.sel(shots=config.n, scaling="by n").median("run")
    softmax = float(dataset.softmax.sel(few=config.n).median("run"))
    return [*(float(linear.sel(model=model)) / bayes for model in LINEAR), softmax / bayes]


def predicted(dataset):  # [R]
    """The number of demonstrations from which η λ_max(XᵀX), divided by n of training, exceeds 2."""
    return _crossing(dataset.shots.values, dataset.largest.transpose("run", "shots"), 2.0)


def harmful(dataset):  # [R]
    """The number of demonstrations from which descent with a fixed divisor is worse than none."""
    error = dataset.error.sel(noise=0.0, model="descent", scaling="fixed")
    level = error_of_zero(results.config_of(dataset).d)
    return _crossing(dataset.shots.values, error.transpose("run", "shots"), level)


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config, grown = results.config_of(dataset), growth(dataset)
    end = dataset.sel(noise=config.noise_std, shots=max(config.shots))
    by_id = {
        "softmax": softmax_growth(dataset).values,
        "threshold": harmful(dataset) / predicted(dataset),
    }
    few, many = config.class_shots
    for model in ALL:
        share = wrong(dataset, model)
        by_id[f"{model}_classes"] = (share.sel(shots=many) - share.sel(shots=few)).values
    for model in LINEAR:
        by_n, fixed = (grown.sel(model=model, scaling=scaling).values for scaling in SCALINGS)
        by_id[f"{model}_normalised"], by_id[f"{model}_fixed"] = by_n, fixed
        error = end.error.sel(model=model, scaling="by n")
        by_id[f"{model}_bayes"] = (error / end.bayes).values
    return by_id


def error_of_zero(d: int) -> float:
    """The median squared error of predicting 0: of (w·x)², with w and x standard normal."""
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 100_000, d))
    return float(np.median((w * x).sum(1) ** 2))


def _crossing(shots, values, level):  # [shots], [R, shots] -> [R]
    """The first number of demonstrations at which values reach a level, between grid points by a
    power law; the last number where they never do."""

    def of_run(row):
        above = np.flatnonzero(row >= level)
        if len(above) == 0:
            return shots[-1]
        j = above[0]
        if j == 0:
            return shots[0]
        share = np.log(level / row[j - 1]) / np.log(row[j] / row[j - 1])
        return shots[j - 1] * (shots[j] / shots[j - 1]) ** share

    return np.array([of_run(row) for row in np.asarray(values, float)])
