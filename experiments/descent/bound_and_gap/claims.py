"""Bounds beside gaps at the worst places of the grid, and how well they rank it, for each task."""

import numpy as np

from experiments.descent.bound_and_gap.config import GRID
from lsa_lab import results
from lsa_lab.statistics import spearman, worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [G]}
    dataset = dataset.transpose("group", *GRID, ...)
    largest_loss = results.config_of(dataset).largest_loss
    everywhere, at_equal_n, by_count = rank_correlations(dataset)
    return {
        "above": _least(dataset.bound - np.abs(dataset.gap)),
        "above_with_noise": _least(dataset.bound - np.abs(dataset.noisy_gap)),
        "says_something": _least(largest_loss - dataset.bound),
        "ranks": everywhere,
        "ranks_at_equal_n": at_equal_n,
        "better_than_counting": everywhere - by_count,
    }


def rank_correlations(dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # [G] each
    """Spearman's correlation with the gap in each group: of the bound over the whole grid, of the
    bound at equal n, averaged over n, and of 1/√n over the whole grid."""

    def agreement(*pair):
        rows = [row_of(values) for values in pair]
        return np.array([spearman(*both) for both in zip(*rows, strict=True)])

    def row_of(values):
        return values.stack(place=GRID).transpose("group", "place").values

    gap, bound = dataset.gap, dataset.bound
    parts = [agreement(bound.sel(shots=[n]), gap.sel(shots=[n])) for n in dataset.shots.values]
    count = (dataset.shots**-0.5).broadcast_like(gap)
    return agreement(bound, gap), np.mean(parts, axis=0), agreement(count, gap)


def _least(values) -> np.ndarray:  # [G, ...] -> [G]
    return worst(values, lambda groups: -groups.mean())
