"""What `gradient_matching` judges: errors and objectives of subsets, over those of others."""

from functools import cached_property, partial

import numpy as np

from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst, worst_elsewhere
from lsa_lab.store import parts, results

A3 = "A3 (2506.04579)"
# Random has rows of its own; the first two are A3's own baselines.
RIVALS = ("best of 5", "k-means", "similarity", "determinantal", "leverage", "stratified")
PUBLISHED = RIVALS[:2]
PLACES = {  # checkpoints that are matched
    "late": "the last {} checkpoints",
    "last": "the last checkpoint alone",
}
ELSEWHERE = "at the size that is worst for the other runs"


class Subsets:
    """The errors of a result by rule and size, beside those of other rules."""

    def __init__(self, dataset):
        self.config, self.curriculum = results.config_of(dataset), parts.part(dataset, "curriculum")
        self.dataset = dataset = parts.part(dataset).transpose("run", ...)
        self.error = dataset.error.transpose("run", "n", "rule")

    @cached_property
    def relative(self):  # [run, n, rule]
        """Errors over that of the median random subset."""
        return self.error / self.error.sel(rule="random")

    @cached_property
    def matched_error(self):  # [run]
        """The error of matching at the ablation's size."""
        return self.error.sel(rule="matching", n=self.config.ablation_size)

    def ratio(self, rival, rule="matching"):  # [run, n]
        """Errors of a rule over those of a rival."""
        return self.error.sel(rule=rule) / self.error.sel(rule=rival)

    def least_mismatched(self):  # [R]
        """The relative error of mismatching at the size where its median is least."""
        return worst(self.relative.sel(rule="mismatching"), lambda runs: -np.median(runs))

    def swaps(self):  # [R]
        gap = self.dataset.gap_by_swaps
        return (gap / gap.isel(swaps=0)).isel(swaps=-1).values

    def one_checkpoint(self):  # [R]
        return (self.dataset.by_used.isel(used=0) / self.dataset.by_used.isel(used=-1)).values

    def matched_early(self, early, later):  # [R]
        """The error with early checkpoints over that with later ones."""
        error = self.curriculum.error.sel(matched=[early, later]).transpose("matched", "run").values
        return error[0] / error[1]


numbers = Subsets


def statements(config) -> tuple[Statement, ...]:
    size = config.ablation_size
    before = "144, and 16" if config.runs > 144 else "16"
    added = partial(Statement, statistic="median")
    median = partial(added, redrawn=f"{config.runs} fresh runs, {before} before")
    over_random = "the error over that of the median random subset"
    curriculum = dict(
        revision="added: one checkpoint had stood against many",
        redrawn=f"{config.curriculum.runs} fresh runs, {config.runs} before",
    )
    return (
        median(
            "random",
            f"{A3}, abstract, in our setting",
            "Matched demonstrations teach better than random ones at every size",
            f"{over_random}, at the worst size",
            at_most=0.8,
            sample=lambda s: worst(s.relative.sel(rule="matching")),
        ),
        median(
            "over_rival",
            "{source}",
            "Matching teaches better than {rival} at every size",
            f"the error over that of {{rival}}, {ELSEWHERE}",
            at_most=1.0,
            revision="a row for each rival, it was the best on average; the worst size was that of "
            "the judged runs",
            sample=lambda s, rival: worst_elsewhere(s.ratio(rival)),
            cells=grid(
                "over_best_of_5 over_k_means over_similarity over_determinantal over_leverage "
                "over_stratified",
                rival=RIVALS,
            ),
            words=lambda rival: dict(
                source=f"{A3}, baselines, in our setting"
                if rival in PUBLISHED
                else f"modelled on {A3}, baselines"
            ),
            message="Matching teaches better than each rival at every size",
        ),
        median(
            "pool",
            f"modelled on {A3}, its method",
            f"{size} matched demonstrations teach nearly as well as the whole pool does",
            f"the error over that of all {config.m}",
            at_most=1.5,
            sample=lambda s: (s.matched_error / s.dataset.pool_error).values,
        ),
        median(
            "mismatching",
            f"{A3}, figure 4, in our setting",
            "{n} mismatched demonstrations teach worse than {n} random ones",
            over_random,
            at_least=1.0,
            note="at the smallest size the stack explodes",
            revision="added, a size each: the row on the least of all sizes fails",
            sample=lambda s, n: s.relative.sel(rule="mismatching", n=n).values,
            cells=mismatched_cells(config),
            message="Mismatched demonstrations teach worse than random ones, size by size",
        ),
        median(
            "mismatched",
            f"{A3}, figure 4, in our setting",
            "Mismatched demonstrations teach worse than random ones at every size",
            f"{over_random}, at the size where it is least",
            at_least=1.0,
            revision="the random subsets were others, and it failed",
            sample=lambda s: s.least_mismatched(),
        ),
        median(
            "prefix",
            f"modelled on {A3}, prefix length",
            "A prefix of any length is as good a learner as the linear proxy",
            f"the error over that of the proxy's choice, n = {size}, at the worst length",
            at_most=1.25,
            sample=lambda s: worst(s.dataset.by_length / s.matched_error),
        ),
        median(
            "swaps",
            f"{A3}, local optimisation, in our setting",
            "Swaps improve what greedy choice has reached",
            f"the objective over that of greedy choice alone, n = {size}",
            at_most=0.8,
            sample=lambda s: s.swaps(),
        ),
        median(
            "checkpoints",
            f"{A3}, curriculum of gradients, in our setting",
            "Gradients along the whole training choose better than the first alone",
            f"the error with one checkpoint over that with all, n = {size}",
            at_least=1.5,
            note="one checkpoint stands against many",
            sample=lambda s: s.one_checkpoint(),
        ),
        added(
            "checkpoints_equal",
            f"{A3}, curriculum of gradients, in our setting",
            f"Matching {config.saves} checkpoints along the training chooses better than matching "
            "equally many early ones",
            f"the error with early checkpoints over that with those along the training, n = {size}",
            at_least=1.5,
            sample=lambda s: s.matched_early("early", "along"),
            **curriculum,
        ),
        added(
            "checkpoints_where",
            "derived here, a control",
            "Matching {places} chooses better than matching equally many early checkpoints",
            f"the error with early checkpoints over that with late ones, n = {size}",
            unjudged="of a bound of 1.5, set before the run, one fails and one is undecided",
            sample=lambda s, early, later: s.matched_early(early, later),
            cells={
                "checkpoints_late": dict(early="early", later="late"),
                "one_last": dict(early="first", later="last"),
            },
            words=lambda early, later: dict(places=PLACES[later].format(config.saves)),
            **curriculum,
        ),
    )


def mismatched_cells(config):
    """A cell for each size; that of the most keeps the id which it had alone."""
    cells = {f"mismatched_{n}": dict(n=n) for n in config.sizes[:-1]}
    return cells | {"mismatched_at_most": dict(n=config.sizes[-1])}
