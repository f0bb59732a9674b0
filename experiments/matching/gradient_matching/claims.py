"""What `gradient_matching` judges: errors and objectives of subsets, over those of others."""

from functools import cached_property, partial

import numpy as np

from experiments.matching.gradient_matching.config import WHITE, directions
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst, worst_elsewhere
from lsa_lab.store import results

A3 = "A3 (2506.04579)"
# Random has rows of its own; the first two are A3's own baselines.
RIVALS = ("best of 5", "k-means", "similarity", "determinantal", "leverage", "stratified")
PUBLISHED = RIVALS[:2]
ELSEWHERE = "at the size that is worst for the other runs"
WITH_THE_RULE = "added, with the rule, to runs that others had judged"


def numbers(dataset) -> "Subsets":
    return Subsets(dataset)


class Subsets:
    """The errors of a result by rule and size, beside those of other rules."""

    def __init__(self, dataset):
        self.config, self.dataset = results.config_of(dataset), dataset.transpose("run", ...)
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

    def least(self, rule):  # [R]
        """The relative error at the size where its median is least."""
        return worst(self.relative.sel(rule=rule), lambda runs: -np.median(runs))

    def whitened_over_plain(self, large):  # [R], None without sizes
        most = directions(self.config)
        sizes = [n for n in self.config.sizes if (n > most) == large]
        return worst_elsewhere(self.ratio("matching", WHITE).sel(n=sizes)) if sizes else None

    def swaps(self):  # [R]
        gap = self.dataset.gap_by_swaps
        return (gap / gap.isel(swaps=0)).isel(swaps=-1).values

    def checkpoints(self):  # [R]
        return (self.dataset.by_used.isel(used=0) / self.dataset.by_used.isel(used=-1)).values


def statements(config) -> tuple[Statement, ...]:
    size, most, count = config.ablation_size, max(config.sizes), directions(config)
    before = "144, and 16" if config.runs > 144 else "16"
    added = partial(Statement, statistic="median")
    median = partial(added, redrawn=f"{config.runs} fresh runs, {before} before")
    over_random = "the error over that of the median random subset"
    return (
        median(
            "random",
            f"{A3}, abstract, in our setting",
            "Matched demonstrations teach better than random ones at every size",
            f"{over_random}, at the worst size",
            at_most=0.8,
            label="matching / random, worst n",
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
            label="matching / {rival}, worst n",
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
        added(
            "whitened_over_plain",
            f"modelled on {A3}, its method",
            "Whitened gradients choose better than plain ones, with {counted} demonstrations than "
            "directions",
            f"the error over that of plain matching, {ELSEWHERE} of those {{place}} {count},",
            at_most=1.0,
            revision=WITH_THE_RULE,
            label="whitened / plain matching, {sizes} n",
            sample=lambda s, sizes: s.whitened_over_plain(sizes == "large"),
            cells=grid("whitened_many whitened_few", sizes=("large", "small")),
            words=lambda sizes: (
                dict(counted="more", place="above")
                if sizes == "large"
                else dict(counted="no more", place="up to")
            ),
            message="Whitened gradients choose better than plain ones, with more demonstrations "
            "than directions and with fewer",
        ),
        median(
            "pool",
            f"modelled on {A3}, its method",
            f"{size} matched demonstrations teach nearly as well as the whole pool does",
            f"the error over that of all {config.m}",
            at_most=1.5,
            label=f"matching / the whole pool, n = {size}",
            sample=lambda s: (s.matched_error / s.dataset.pool_error).values,
        ),
        median(
            "mismatched_at_most",
            f"{A3}, figure 4, in our setting",
            f"{most} mismatched demonstrations teach worse than {most} random ones",
            over_random,
            at_least=1.0,
            revision="added",
            label=f"mismatching / random, n = {most}",
            sample=lambda s: s.relative.sel(rule="mismatching", n=most).values,
        ),
        median(
            "mismatched",
            f"{A3}, figure 4, in our setting",
            "Mismatched demonstrations teach worse than random ones at every size",
            f"{over_random}, at the size where it is least",
            at_least=1.0,
            revision="the random subsets were others, and it failed",
            label="mismatching / random, least n",
            sample=lambda s: s.least("mismatching"),
        ),
        median(
            "prefix",
            f"modelled on {A3}, prefix length",
            "A prefix of any length is as good a learner as the linear proxy",
            f"the error over that of the proxy's choice, n = {size}, at the worst length",
            at_most=1.25,
            label="prefix / linear proxy, worst length",
            sample=lambda s: worst(s.dataset.by_length / s.matched_error),
        ),
        median(
            "swaps",
            f"{A3}, local optimisation, in our setting",
            "Swaps improve what greedy choice has reached",
            f"the objective over that of greedy choice alone, n = {size}",
            at_most=0.8,
            label="objective, swaps / greedy",
            sample=lambda s: s.swaps(),
        ),
        median(
            "checkpoints",
            f"{A3}, curriculum of gradients, in our setting",
            "Gradients along the whole training choose better than the first alone",
            f"the error with one checkpoint over that with all, n = {size}",
            at_least=1.5,
            label="one / all checkpoints",
            sample=lambda s: s.checkpoints(),
        ),
    )
