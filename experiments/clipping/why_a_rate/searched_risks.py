"""Gains by searched edits, and risks after those edits, their rivals and rules for a rank."""

from functools import cached_property

import numpy as np

from experiments.clipping.why_a_rate.config import CONDITIONS
from experiments.clipping.why_a_rate.rate_rules import (
    MODULES,
    PREDICTORS,
    best_rates,
    rank_correlations,
    regrets,
)
from lsa_lab.store import results

CELLS = ("layer", "module")
OTHERS = [name for name in CONDITIONS if name != "matched"]


class Searched:
    """What the edits of a result gain, and what others cost beside them."""

    def __init__(self, dataset):
        self.dataset = dataset
        gains = (dataset.gain.sel(search=name) for name in dataset.search)
        self.gain, self.single, self.transferred = gains  # each (condition, run)
        self.test = dataset.change.sel(prompts="test")
        self.dropped = self.test.isel(rate=-1)

    def matched_loss(self):  # [R]
        return -self.transferred.sel(condition=OTHERS).mean("condition").values

    def other_ranks(self):  # [R]
        """The share of matrices with another best rank than matched, less the share that differ
        between two sets of prompts of one condition."""
        ranks, second = (
            self.dataset.kept.isel(rate=best_rates(self.dataset, prompts))
            for prompts in ("validation", "test")
        )
        by_luck = (ranks != second).mean(CELLS)
        differs = (ranks != ranks.sel(condition="matched", drop=True)).mean(CELLS)
        beyond = differs - (by_luck + by_luck.sel(condition="matched", drop=True)) / 2
        return beyond.sel(condition=OTHERS).mean("condition").values

    def harm_by_drop(self):  # [R]
        return abs(self.dropped.sel(module="layer")).median("layer").mean("condition").values

    def drop_over_clip(self):  # [R]
        clipped = self.test.isel(rate=best_rates(self.dataset, modules=tuple(MODULES)))
        spared = (np.log1p(self.dropped) - np.log1p(clipped)).sel(module="layer")
        return spared.mean(("condition", "layer")).values

    def rival_over_clip(self, rival):  # [R]
        rates = list(results.config_of(self.dataset).rival_rates)
        same = self.test.sel(rate=rates).rename(rate="rival_rate")
        difference = np.log1p(self.dataset.rival.sel(way=rival)) - np.log1p(same)
        return difference.mean(("condition", *CELLS, "rival_rate")).values

    @cached_property
    def correlations(self):  # {predictor: [R]}
        runs = rank_correlations(self.dataset).mean(0)
        return dict(zip(PREDICTORS, runs.T, strict=True))

    @cached_property
    def regrets(self):  # {predictor, or "none", which cuts nothing: [R]}
        runs = regrets(self.dataset).mean(0)
        return dict(zip((*PREDICTORS, "none"), runs.T, strict=True))
