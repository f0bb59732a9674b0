"""Errors and objectives of subsets, over those that `gradient_matching` compares them with."""

import numpy as np

from experiments.matching.gradient_matching.config import RIVALS, WHITE, directions
from experiments.matching.learners import tag
from lsa_lab import results
from lsa_lab.statistics import worst, worst_elsewhere


def relative(dataset):  # [run, n, rule]
    """Errors over that of the median random subset."""
    return (dataset.error / dataset.error.sel(rule="random")).transpose("run", "n", "rule")


def over_rival(dataset, rival):  # [run, n]
    """Errors of matching over those of a rival."""
    error = dataset.error.transpose("run", "n", "rule")
    return error.sel(rule="matching") / error.sel(rule=rival)


def whitened_over(dataset, rival, sizes):  # -> [R]
    """Errors of whitened matching over those of a rival, at the size that is worst elsewhere."""
    error = dataset.error.transpose("run", "n", "rule").sel(n=sizes)
    return worst_elsewhere(error.sel(rule=WHITE) / error.sel(rule=rival)) if sizes else None


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    size, most = config.ablation_size, max(config.sizes)
    dataset = dataset.transpose("run", ...)
    ratio = relative(dataset)
    matched = dataset.error.sel(rule="matching", n=size)
    swapped = dataset.gap_by_swaps / dataset.gap_by_swaps.isel(swaps=0)
    rivals = [np.exp(np.log(over_rival(dataset, rival)).mean("n")) for rival in RIVALS]
    return {
        "random": worst(ratio.sel(rule="matching")),
        "mismatched_at_most": ratio.sel(rule="mismatching", n=most).values,
        "mismatched": worst(ratio.sel(rule="mismatching"), lambda runs: -np.median(runs)),
        **{f"over_{tag(rival)}": worst_elsewhere(over_rival(dataset, rival)) for rival in RIVALS},
        "rivals_on_average": worst(np.stack(rivals, axis=1)),
        "whitened_many": whitened_over(
            dataset, "matching", [n for n in config.sizes if n > directions(config)]
        ),
        "whitened_few": whitened_over(
            dataset, "matching", [n for n in config.sizes if n <= directions(config)]
        ),
        "whitened_determinantal": whitened_over(dataset, "determinantal", list(config.sizes)),
        "pool": (matched / dataset.pool_error).values,
        "prefix": worst(dataset.by_length / matched),
        "exact": worst(dataset.small.sel(how="swaps") / dataset.small.sel(how="exact")),
        "swaps": swapped.isel(swaps=-1).values,
        "checkpoints": (dataset.by_used.isel(used=0) / dataset.by_used.isel(used=-1)).values,
    }
