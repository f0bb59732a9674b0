"""The risks of a result over each other, run by run."""

import numpy as np

from experiments.heads.preprocess_then_optimise.config import MODELS
from experiments.heads.rule_names import RIDGE
from lsa_lab.store import results


class Ratios:
    """Ratios of a result's risks on the same prompts."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)

    def over_raw(self, rule: str):  # (run, depth)
        """Steps of sizes of their own, over as many of raw descent."""
        fitted = self.dataset.fitted
        return (fitted / fitted.sel(tuned="raw")).transpose("run", ...).sel(tuned=rule)

    def a_step_less(self, rule: str):  # (run)
        fitted = self.dataset.fitted
        return fitted.sel(tuned=rule).isel(depth=-2) / fitted.sel(tuned="raw").isel(depth=-1)

    def over_ridge(self, rule: str) -> np.ndarray:  # [R]
        ratio = self.dataset.best / self.dataset.of_rule.sel(reference=RIDGE)
        return infinite_as_largest(ratio.sel(rule=rule).values)

    def over_fewer_heads(self):  # (run, used)
        heads, d = self.dataset.of_heads.transpose("run", ...), self.config.d
        fewer = [str(count) for count in self.config.heads if count < d]
        return heads.sel(used=str(d)) / heads.sel(used=fewer)

    def wide(self, rule: str):  # (run)
        return in_units_of_noise(self.config) * self.dataset.wide_best.sel(rule=rule)

    def learned(self, features: str, over: str = "raw"):  # (seed)
        best = self.dataset.learned_best
        return best.sel(features=features) / best.sel(features=over)

    def model(self):  # (seed)
        return self.dataset.of_model.sel(model=MODELS[-1])


def infinite_as_largest(ratios: np.ndarray) -> np.ndarray:  # [R]
    """A median may hold runs that diverged, as worse than all others."""
    return np.where(np.isposinf(ratios), np.finfo(float).max, ratios)


def in_units_of_noise(config) -> float:
    """n / σ² of the wide task, in which plain descent reaches d and the best rule s."""
    return config.wide_n / config.wide_noise_var


def steps_to_win(dataset, rule: str) -> int | None:
    """The number of steps from which on the median risk of a rule is below that of raw descent."""
    medians = dataset.by_step.median("run")
    ahead = (medians.sel(rule=rule) < medians.sel(rule="raw")).values
    start = len(ahead) - int(np.argmin(np.append(ahead[::-1], False)))
    return int(dataset.t[start]) if start < len(ahead) else None
