"""Bounds beside gaps at the worst places of the grid, and how well they rank it, for each task."""

import numpy as np

from experiments.descent.bound_and_gap.config import GRID
from lsa_lab import results
from lsa_lab.statistics import best_elsewhere, spearman, worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [G]}
    dataset = dataset.transpose("group", *GRID, "update_noise")
    largest_loss = results.config_of(dataset).largest_loss
    return {
        "above": _least(dataset.spread_bound - np.abs(dataset.gap)),
        "above_with_noise": _least(dataset.noisy_bound - np.abs(dataset.noisy_gap)),
        "says_something": _least(largest_loss - least_bounds(dataset)),
        "says_something_by_spread": _least(largest_loss - dataset.spread_bound),
        **{name: best_elsewhere(values) for name, values in orders(dataset, "bound").items()},
        **{f"{name}_by_spread": x[:, 0] for name, x in orders(dataset, "spread_bound").items()},
    }


def least_bounds(dataset):  # -> (group, *GRID)
    """The least over c of a bound on the gap without noise, with c chosen on the other tasks:
    bound(c) + |change of the population risk by that noise| + |change of the empirical one|."""
    total = dataset.noisy_bound + dataset.noise_cost
    axes = ("group", *GRID)
    return dataset.gap.transpose(*axes).copy(
        data=-best_elsewhere(-total.transpose(*axes, "update_noise").values)
    )


def orders(dataset, name) -> dict[str, np.ndarray]:  # {id: [G, c]}, one c for the spread
    """Spearman's correlation of the bound and the gap over the whole grid, at equal n averaged over
    n, and what the first has over that of 1/√n."""
    bound = dataset[name]
    if "update_noise" not in bound.dims:
        bound = bound.expand_dims("update_noise")
    everywhere = _agreement(bound, dataset.gap)
    parts = [_agreement(bound.sel(shots=[n]), dataset.gap.sel(shots=[n])) for n in bound.shots]
    count = (dataset.shots**-0.5).broadcast_like(dataset.gap).expand_dims("update_noise")
    return {
        "ranks": everywhere,
        "ranks_at_equal_n": np.mean(parts, axis=0),
        "better_than_counting": everywhere - _agreement(count, dataset.gap),
    }


def _agreement(bound, gap) -> np.ndarray:  # [G, c]
    bounds = bound.stack(place=GRID).transpose("group", "update_noise", "place").values
    gaps = gap.stack(place=GRID).transpose("group", "place").values
    rows = zip(bounds, gaps, strict=True)
    return np.array([[spearman(each, gap) for each in group] for group, gap in rows])


def _least(values) -> np.ndarray:  # [G, ...] -> [G]
    return worst(values, lambda groups: -groups.mean())
