"""Gains, rivals and regrets of searched rates, as `why_a_rate` judges them."""

import numpy as np

from experiments.clipping.why_a_rate.config import CONDITIONS, RIVALS
from experiments.clipping.why_a_rate.rate_rules import (
    MODULES,
    PREDICTORS,
    best_rates,
    rank_correlations,
    regrets,
    repeats,
)
from lsa_lab import results

CELLS = ("layer", "module")
OTHERS = [name for name in CONDITIONS if name != "matched"]


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    return gain_samples(dataset) | other_edit_samples(dataset) | rule_samples(dataset)


def gain_samples(dataset):
    searched, single, transferred = (dataset.gain.sel(search=name) for name in dataset.search)
    values = {
        f"gain_{name.replace('-', '_')}": searched.sel(condition=name).values for name in CONDITIONS
    }
    values["single_module"] = single.mean("condition").values
    values["rate_varies"] = other_ranks(dataset).sel(condition=OTHERS).mean("condition").values
    values["same_rate"] = -transferred.sel(condition=OTHERS).mean("condition").values
    return values


def other_ranks(dataset):  # -> (condition, run)
    """The share of matrices with another best rank than matched, less the share that differ between
    two sets of prompts of one condition."""
    ranks, again = (
        dataset.kept.isel(rate=best_rates(dataset, prompts)) for prompts in ("validation", "test")
    )
    by_luck = (ranks != again).mean(CELLS)
    differs = (ranks != ranks.sel(condition="matched", drop=True)).mean(CELLS)
    return differs - (by_luck + by_luck.sel(condition="matched", drop=True)) / 2


def other_edit_samples(dataset):
    test = dataset.change.sel(prompts="test")
    dropped = test.isel(rate=-1)
    whole = abs(dropped.sel(module="layer")).median("layer")
    clipped = test.isel(rate=best_rates(dataset, modules=tuple(MODULES)))
    spared = (np.log1p(dropped) - np.log1p(clipped)).sel(module="layer")
    values = {
        "dropping_is_harmless": whole.mean("condition").values,
        "clip_or_drop": spared.mean(("condition", "layer")).values,
    }
    rates = list(results.config_of(dataset).rival_rates)
    same = test.sel(rate=rates).rename(rate="rival_rate")
    for way in RIVALS:
        difference = np.log1p(dataset.rival.sel(way=way)) - np.log1p(same)
        values[f"clip_or_{way}"] = difference.mean(("condition", *CELLS, "rival_rate")).values
    return values


def rule_samples(dataset):
    correlations, extra = rank_correlations(dataset).mean(0), regrets(dataset).mean(0)  # [R, ...]
    values = {"no_search_regret": extra[:, -1], "search_repeats": repeats(dataset).mean(0)}
    for i, name in enumerate(PREDICTORS):
        key = name.replace(" ", "_")
        values[f"{key}_ranks"] = correlations[:, i]
        values[f"{key}_regret"] = extra[:, i]
    return values
