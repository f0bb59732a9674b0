"""The changes, shares and ratios that the statements of `amplification_limits` are judged by."""

import numpy as np

from experiments.flow.amplification_limits.config import MAPS
from lsa_lab import results
from lsa_lab.statistics import worst


def changes(dataset):  # [restart, direction, budget]
    """The log ratio after the last layer less that after the first, where ascent ended."""
    change = dataset.search.isel(search_layer=-1) - dataset.search.isel(search_layer=0)
    return change.transpose("restart", "direction", "budget")


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [restarts] or [R] or []}
    config = results.config_of(dataset)
    change = changes(dataset)
    small, large = (change.sel(budget=end(config.budgets)) for end in (min, max))
    last = dataset.search.sel(direction="least", budget=config.shown).isel(search_layer=-1)
    alone = dataset.growth.sel(mode="alone").transpose("run", "gain", "feedback")
    right = dataset.agreement.transpose("run", "map")
    return {
        "theorem_1": large.sel(direction="least").values,
        "order": last.values,
        "robust": dataset.reverses.values,
        "small_weights": np.abs(small).max("direction").values,
        "push": worst(alone.sel(feedback=1), lambda runs: -np.median(runs)),
        "pull": worst(alone.sel(feedback=-1)),
        "kappa_moving": right.sel(map=MAPS[1]).values,
    }
