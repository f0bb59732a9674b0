"""Gaps between the answers after a twin or a subset and after its pool, as statements ask."""

import numpy as np

from lsa_lab import results


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config, dataset = results.config_of(dataset), dataset.transpose("run", "pair", ...)
    knee, by_id = config.d + 1, {}
    for weights in dataset.weights.values:
        gap = dataset.softmax.sel(weights=weights)
        by_id[f"softmax_{weights}"] = gap.sel(matched=knee).values
        by_id[f"softmax_{weights}_nearer"] = (gap.sel(matched=knee) / gap.sel(matched=0)).values
    subset = dataset.subset[:, knee - 1] / random_subsets(config, dataset.subset)
    by_id |= {"subset": subset.values}
    chosen = dataset.softmax_subset.sel(weights="trained")
    nearer = chosen.sel(gradients="whitened") / chosen.sel(gradients="plain")
    return by_id | {
        "whitened_subset": (dataset.whitened / random_subsets(config, dataset.subset)).values,
        "whitened_nearer": (dataset.whitened / dataset.subset[:, knee - 1]).values,
        "whitened_softmax": nearer.values,
    }


def random_subsets(config, values):  # [run, pick] -> [run]
    """The median random subset; those that match 1, 2, ... checkpoints come first."""
    return values[:, config.most :].median("pick")
