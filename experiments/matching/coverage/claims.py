"""Shares and errors of matched subsets, over those of random and of stratified ones."""

import numpy as np

from experiments.matching.coverage.config import (
    CLASSES,
    PROXIES,
    SHARES,
    TAGS,
    WHITE,
    count_proxies,
    shares,
)
from lsa_lab import results
from lsa_lab.statistics import worst, worst_elsewhere


def relative(dataset):  # [kind, run, n, rule, group]
    """Errors over those of random subsets."""
    return dataset.error / dataset.error.sel(rule="random")


def relative_divergence(dataset):  # [kind, run, n, rule]
    """The KL over its expectation for random subsets."""
    return dataset.divergence / dataset.expected


def over_matching(dataset, rule):  # [kind, run, n]
    """The error of a rule over that of matching, groups weighed by their shares."""
    weights = np.array(shares(results.config_of(dataset)))
    error = (dataset.error * weights).sum("group")
    return error.sel(rule=rule) / error.sel(rule="matching")


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    by_id = {}
    for kind, tag in TAGS.items():
        pools = dataset.sel(kind=kind).transpose("run", "n", ...)
        error = relative(pools).sel(rule="matching")
        minority, majority = error.sel(group="minority"), error.sel(group="majority")
        divergence = relative_divergence(pools)
        if kind == CLASSES:
            divergence = divergence.sel(n=[max(pools.n.values)])
        for rule, name in [*zip(PROXIES, SHARES, strict=True)][: count_proxies(kind)]:
            by_id[f"{tag}_{name}"] = worst_elsewhere(divergence.sel(rule=rule), np.mean)
        by_id[f"{tag}_minority"] = worst(minority)
        by_id[f"{tag}_favours"] = worst(minority / majority, lambda runs: -np.median(runs))
        by_id[f"{tag}_strata"] = worst(over_matching(pools, "stratified"))
        by_id[f"{tag}_shares_whitened"] = worst_elsewhere(divergence.sel(rule=WHITE), np.mean)
        by_id[f"{tag}_whitened"] = worst_elsewhere(over_matching(pools, WHITE))
    return by_id
