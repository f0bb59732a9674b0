"""Shares and errors of matched subsets, over those of random and of stratified ones."""

import numpy as np

from experiments.matching.coverage.config import TAGS, shares
from lsa_lab import results
from lsa_lab.statistics import worst


def relative(dataset):  # [kind, run, n, rule, group]
    """Errors over those of random subsets."""
    return dataset.error / dataset.error.sel(rule="random")


def relative_divergence(dataset):  # [kind, run, n]
    """The KL of matching over the mean of random subsets over runs."""
    random = dataset.divergence.sel(rule="random").mean("run")
    return dataset.divergence.sel(rule="matching") / random


def over_strata(dataset):  # [kind, run, n]
    """The error of stratified subsets over that of matching, groups weighed by their shares."""
    weights = np.array(shares(results.config_of(dataset)))
    error = (dataset.error * weights).sum("group")
    return error.sel(rule="stratified") / error.sel(rule="matching")


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    by_id = {}
    for kind, tag in TAGS.items():
        pools = dataset.sel(kind=kind).transpose("run", "n", ...)
        error = relative(pools).sel(rule="matching")
        minority, majority = error.sel(group="minority"), error.sel(group="majority")
        by_id[f"{tag}_shares"] = worst(relative_divergence(pools))
        by_id[f"{tag}_minority"] = worst(minority)
        by_id[f"{tag}_favours"] = worst(minority / majority, lambda runs: -np.median(runs))
        by_id[f"{tag}_strata"] = worst(over_strata(pools))
    return by_id
