"""Errors and objectives of subsets, over those that `gradient_matching` compares them with."""

import numpy as np

from experiments.matching.gradient_matching.config import RIVALS
from lsa_lab import results
from lsa_lab.statistics import worst


def relative(dataset):  # [run, n, rule]
    """Errors over that of the median random subset."""
    return (dataset.error / dataset.error.sel(rule="random")).transpose("run", "n", "rule")


def over_rival(dataset):  # [run, n]
    """Errors of matching over those of ``best_rival``."""
    error = dataset.error.transpose("run", "n", "rule")
    return error.sel(rule="matching") / error.sel(rule=best_rival(dataset))


def best_rival(dataset) -> str:
    """The rival whose median error over runs is least in the geometric mean over sizes."""
    log = np.log(dataset.error.sel(rule=list(RIVALS))).mean("n").median("run")
    return str(log.rule.values[int(np.argmin(log.values))])


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    size = results.config_of(dataset).ablation_size
    dataset = dataset.transpose("run", ...)
    ratio = relative(dataset)
    matched = dataset.error.sel(rule="matching", n=size)
    swapped = dataset.gap_by_swaps / dataset.gap_by_swaps.isel(swaps=0)
    return {
        "random": worst(ratio.sel(rule="matching")),
        "mismatched": worst(ratio.sel(rule="mismatching"), lambda runs: -np.median(runs)),
        "rivals": worst(over_rival(dataset)),
        "pool": (matched / dataset.pool_error).values,
        "prefix": worst(dataset.by_length / matched),
        "exact": worst(dataset.small.sel(how="swaps") / dataset.small.sel(how="exact")),
        "swaps": swapped.isel(swaps=-1).values,
        "checkpoints": (dataset.by_used.isel(used=0) / dataset.by_used.isel(used=-1)).values,
    }
