"""The gains of one learner in one run, summed up: in classes, by ranks, by single factors."""

import numpy as np
from scipy.stats import rankdata

from experiments.flow.classes import cell_means, classes_of, fits
from experiments.flow.relevance_and_novelty.config import SINGLES
from lsa_lab.judging.statistics import spearman

PAIRS = (("similarity", "surprise"), ("flow", "surprise"), ("correlation", "variance"))


def summary(factors: dict, expected, actual, zero, count: int) -> dict:  # arrays [B]
    """``zero`` is the mean error without the demonstration, the unit of the maps."""
    of_factor = {name: classes_of(values, count)[0] - 1 for name, values in factors.items()}
    rows = [(of_factor[first], of_factor[second]) for first, second in PAIRS]
    maps = np.stack([cell_means([expected / zero], *row, count)[0] for row in rows])
    roots = np.sign(maps) * np.sqrt(np.abs(maps))
    ranks = rankdata(expected)
    as_many = [classes_of(factors[name], count**2)[0] - 1 for name in SINGLES]
    return {
        "map": maps,
        "rise": np.array([rise(grid) for grid in maps]),
        "r2": np.array([[fits(grid) for grid in scaled] for scaled in (maps, roots)]),
        "between": np.array(
            [share_between(ranks, row[0] * count + row[1]) for row in rows]
            + [share_between(ranks, of_class) for of_class in as_many]
        ),
        "single": spearman(actual, factors["flow"] * factors["surprise"]),
    }


def rise(grid):  # [K, K] -> []
    """The lesser, over both factors, of the mean rank correlation within classes of the other."""
    return min(
        np.mean([spearman(row, np.arange(len(row))) for row in rows]) for rows in (grid, grid.T)
    )


def share_between(values, of_class):  # [B], [B] -> []
    """The share of the variance that lies between classes."""
    numbers = np.bincount(of_class)
    means = np.bincount(of_class, values) / np.maximum(numbers, 1)
    return (numbers * (means - values.mean()) ** 2).sum() / len(values) / values.var()
