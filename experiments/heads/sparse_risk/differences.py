"""Risks over the bound, and paired differences of two rules, out of a result."""

import numpy as np

from experiments.heads.rule_names import LASSO, RIDGE
from experiments.heads.sparse_risk.config import PREPROCESSED, axes_of
from lsa_lab.store import results


def over_bound(dataset, panel):
    """The risks of a panel over the least of rules linear in the labels that ignore directions."""
    return dataset[panel] / dataset[f"{panel}_bound"]


def paired(dataset, panel, better, worse):
    """What ``worse`` loses beyond ``better``, over the bound."""
    over = over_bound(dataset, panel)
    return over.sel(rule=worse) - over.sel(rule=better)


def places_of(*arrays) -> np.ndarray:  # [run, place]
    """Arrays with an axis "run", their other axes flattened, side by side."""
    rows = [array.transpose("run", ...).values for array in arrays]
    return np.concatenate([row.reshape(len(row), -1) for row in rows], axis=1)


def least_clear(differences) -> tuple[float, float]:  # [run, place]
    """The mean and its standard error, at the place where their ratio is smallest."""
    means = differences.mean(0)
    errors = differences.std(0, ddof=1) / len(differences) ** 0.5
    place = np.argmin(means / errors)
    return float(means[place]), float(errors[place])


def along_n(dataset, better, *others) -> np.ndarray:  # [run, place]
    return places_of(*(paired(dataset, "by_n", better, rule) for rule in others))


def over_ridge(dataset, panel: str) -> np.ndarray:  # [run, place]
    """What ridge loses beyond preprocessed descent, where w has zeros."""
    difference = paired(dataset, panel, PREPROCESSED, RIDGE)
    if panel == "by_s":
        d = results.config_of(dataset).d
        difference = difference.sel(s=dataset.s.values[dataset.s.values < d])
    return places_of(difference)


def duel(dataset, signal: str):  # (run, length)
    """What the Lasso loses beyond preprocessed descent."""
    return paired(dataset, "long", PREPROCESSED, LASSO).sel(signal=signal)


def everywhere(dataset, rule) -> np.ndarray:  # [run, place]
    """The risks of a rule, or of several, over the bound, in all panels."""
    panels = axes_of(results.config_of(dataset))
    return places_of(*(over_bound(dataset, panel).sel(rule=rule) for panel in panels))


def longest(dataset, rule):  # (run)
    """n · excess / σ² in the wide task, at the largest n."""
    config = results.config_of(dataset)
    risks = dataset.wide.isel(wide_n=-1) * config.wide_lengths[-1] / config.loud
    return risks.sel(rule=rule).values
