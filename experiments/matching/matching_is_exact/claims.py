"""Gaps between the answers after a twin and after its pool, where the statements look."""

import numpy as np

from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config, dataset = results.config_of(dataset), dataset.transpose("run", ...)
    knee, proxy = config.d + 1, dataset.linear.sel(path="proxy")
    deep = [f"descent, {depth}" for depth in config.depths if depth > 1]
    descents = proxy.sel(model=[f"descent, {depth}" for depth in config.depths], square="free")
    random = proxy.sel(model=[f"random, {depth}" for depth in config.random_depths], matched=knee)
    return {
        "knee": worst(descents.sel(matched=knee)),
        "before_the_knee": worst(descents.sel(model=deep, matched=knee - 1), _least),
        "own_path": worst(own_path(config, dataset)),
        "own_path_before": worst(own_path(config, dataset, less=1), _least),
        "any_stack": worst(random.sel(square="matched")),
        "square": worst(random.sel(square="free"), _least),
        "softmax": worst(dataset.softmax.sel(matched=knee), _least),
        "bound": dataset.tight.max("pick").values,
        "subset": (dataset.subset[:, knee - 1] / random_subsets(config, dataset.subset)).values,
    }


def own_path(config, dataset, less=0):  # -> [R, depths]
    """The gap of L layers with min(L, d + 1) checkpoints of their own path matched, or fewer."""
    gaps = dataset.linear.sel(path="descent", square="free")
    columns = [
        gaps.sel(model=f"descent, {depth}", matched=min(depth, config.d + 1) - less).values
        for depth in config.depths
    ]
    return np.stack(columns, axis=1)


def random_subsets(config, values):  # [run, pick] -> [run]
    """The median random subset; those that match 1, 2, ... checkpoints come first."""
    return values[:, config.most :].median("pick")


def _least(runs):
    return -np.median(runs)
