"""Errors after chosen subsets over those after random ones, and whether targets rank them alike."""

import numpy as np

from experiments.matching.matching_transfer.statements import SMALL, SUBSETS
from lsa_lab.statistics import worst


def ratios(dataset):  # [run, target, rule]
    """Error of the chosen subset over that of the median random one, in each run's median pool."""
    ratio = (dataset.chosen / dataset.random.median("subset")).median("pool")
    return ratio.transpose("run", "target", "rule")


def larger(dataset) -> list[str]:
    return [name for name in dataset.target.values if name != SMALL]


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    every = ratios(dataset)
    small, ratio = every.sel(target=SMALL), every.sel(target=larger(dataset))
    gaps = dataset.by_gap.transpose("run", ...)
    half, proxy, prefix = (
        ratio.sel(rule=rule) for rule in ("half proxy", "linear proxy", "prefix")
    )
    rank = dataset.spearman.sel(target=SMALL, other=larger(dataset)).transpose("run", ...)
    return {
        "proxy": worst(proxy),
        "prefix": worst(prefix),
        "proxy_on_average": on_average(proxy),
        "prefix_on_average": on_average(prefix),
        "mismatching": worst(ratio.sel(rule="mismatched"), _least),
        "literal": worst(prefix / proxy),
        "half_on_average": on_average(half),
        "half_loss": on_average(half / proxy),
        "deep": small.sel(rule="deep prefix").values,
        "deep_loss": (small.sel(rule="deep prefix") / small.sel(rule="prefix")).values,
        "rank_gap": gaps.sel(gradients="prefix", target=larger(dataset)).mean("target").values,
        "rank_gap_deep": gaps.sel(gradients="deep prefix", target=SMALL).values,
        **{f"rank_{name}": worst(rank.sel(subsets=name), _least) for name in SUBSETS},
    }


def on_average(ratio):  # [run, target] -> [R]
    return np.exp(np.log(ratio).mean("target")).values


def over_bayes(dataset):  # [target]
    """How far from the best: the median error after random subsets over that of the Bayes rule."""
    axes = ["run", "pool", "subset"]
    return dataset.random.median(axes) / dataset.bayes.median(axes)


def _least(runs):
    return -np.median(runs)
