"""What matching gains in clean and in spoilt pools, and how many of the outliers it picks."""

import numpy as np

from experiments.matching.learners import EXACT, learners, tag
from experiments.matching.noisy_pools.config import CLEAN, KINDS, OUTLIERS
from lsa_lab import results


def logs(dataset):  # [run, learner, kind, n, rule]
    """Logarithms of errors over those of random subsets, of either the mean over the pools."""
    log = np.log(dataset.error)
    relative = log - log.sel(rule="random")
    return relative.transpose("run", "learner", "kind", "n", "rule")


def over_random(dataset, learner, rule="matching"):  # [run, kind]
    """Mean over the sizes of a learner; a trained model has one."""
    config = results.config_of(dataset)
    sizes = config.sizes if learner in EXACT else [config.model_size]
    return logs(dataset).sel(learner=learner, rule=rule, n=sizes).mean("n")


def picked(dataset, rule="matching"):  # [run, kind]
    """The outliers' share among the chosen over that in the pool."""
    share = dataset.outliers.sel(rule=rule).mean("n")
    return (share / dataset.pool_outliers).transpose("run", "kind")


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config, by_id = results.config_of(dataset), {}
    for learner in learners(config):
        gained = over_random(dataset, learner)
        for kind in KINDS:
            by_id[f"{tag(learner)}_{tag(kind)}"] = np.exp(gained.sel(kind=kind).values)
        for kind in OUTLIERS:
            kept = np.exp((gained.sel(kind=kind) - gained.sel(kind=CLEAN)).values)
            by_id[f"{tag(learner)}_{tag(kind)}_kept"] = kept
    shares = picked(dataset)
    by_id |= {f"{tag(kind)}_outliers": shares.sel(kind=kind).values for kind in OUTLIERS}
    matched = dataset.error.sel(learner="descent", rule="matching", n=max(config.sizes))
    over = matched / dataset.pool_error
    return by_id | {f"{tag(kind)}_pool": over.sel(kind=kind).values for kind in KINDS}
