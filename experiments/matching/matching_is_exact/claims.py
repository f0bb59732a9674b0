"""Gaps between the answers after a twin or a subset and after its pool, as statements ask."""

import numpy as np

from experiments.matching.matching_is_exact.config import MATCHING
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
    plain, whitened, scaled = (chosen.sel(gradients=name) for name in MATCHING)
    return by_id | {
        "whitened_subset": (dataset.whitened / random_subsets(config, dataset.subset)).values,
        "whitened_nearer": (dataset.whitened / dataset.subset[:, knee - 1]).values,
        "whitened_softmax": (whitened / plain).values,
        "whitened_over_scaled": (dataset.whitened / dataset.scaled).values,
        "whitened_over_scaled_softmax": (whitened / scaled).values,
    }


def over_random(dataset) -> dict[str, np.ndarray]:  # {learner: [run or pair, 3]}
    """Gaps after plain, scaled and whitened matching over that of the median random subset."""
    config, dataset = results.config_of(dataset), dataset.transpose("run", "pair", ...)
    after = dataset.subset[:, config.d], dataset.scaled, dataset.whitened
    linear = np.stack(after, axis=1) / random_subsets(config, dataset.subset).values[:, None]
    trained = dataset.sel(weights="trained", gradients=["plain", "scaled", "whitened"])
    softmax = trained.softmax_subset / trained.softmax_random.median("draw")
    return {"linear": linear, "softmax": softmax.transpose("pair", "gradients").values}


def random_subsets(config, values):  # [run, pick] -> [run]
    """The median random subset; those that match 1, 2, ... checkpoints come first."""
    return values[:, config.most :].median("pick")
