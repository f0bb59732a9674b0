"""Slopes of log risk, a pseudo-value for each run, so that the spread of a slope is seen."""

from collections.abc import Callable

import numpy as np

from experiments.heads.risk_rates.config import (
    DIRECTIONLESS,
    LASSO,
    ORACLE,
    PANELS,
    PREPROCESSED,
)
from lsa_lab import results


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    long, short = dataset.n >= config.long, dataset.n <= config.short
    of_rates = {
        "n": dataset.by_n.isel(n=long.values),
        "s": dataset.by_s,
        "d": dataset.by_d,
    }
    of_rest = {
        "n": left_over(dataset.by_n.isel(n=short.values)),
        "s": left_over(dataset.short_by_s),
        "d": left_over(dataset.short_by_d),
    }
    rows = {}
    for axis, target in (("n", -1), ("s", 0), ("d", 1)):
        risks = of_rates[axis]
        rows[f"preprocessed_{axis}"] = slopes(risks.sel(rule=PREPROCESSED))
        each = [slopes(risks.sel(rule=rule)) for rule in DIRECTIONLESS]
        rows[f"directionless_{axis}"] = max(each, key=lambda runs: abs(runs.mean() - target))
        rows[f"lasso_{axis}"] = slopes(risks.sel(rule=LASSO))
        rows[f"left_{axis}"] = slopes(of_rest[axis])
    return rows


def left_over(risks):
    """What preprocessed descent loses beyond least squares on the support."""
    return risks.sel(rule=PREPROCESSED) - risks.sel(rule=ORACLE)


def slopes(risks) -> np.ndarray:  # axes run and one of n, s, d -> [R]
    (axis,) = set(risks.dims) & set(PANELS.values())
    x = np.log(risks[axis].values)

    def slope(means):
        return np.polyfit(x, np.log(means), 1)[0]

    return pseudo_values(slope, risks.transpose("run", axis).values)


def pseudo_values(statistic: Callable, runs: np.ndarray) -> np.ndarray:  # [R, ...] -> [R]
    """R θ(mean of all) - (R - 1) θ(mean of the others), for each run: their mean is the
    jackknife's estimate of θ, their spread tells its error (Tukey 1958)."""
    count, total = len(runs), runs.sum(0)
    others = [statistic((total - run) / (count - 1)) for run in runs]
    return count * statistic(total / count) - (count - 1) * np.array(others)
