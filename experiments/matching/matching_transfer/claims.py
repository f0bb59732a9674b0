"""What `matching_transfer` judges: errors after chosen subsets over those after random ones, and
whether targets rank subsets alike.

Medians over pools, then over runs: linear stacks explode on rare subsets.
"""

from functools import cached_property, partial

import numpy as np

from experiments.matching.matching_transfer.config import SMALL, targets
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst

TRANSFER = "A3 (2506.04579), abstract, in our setting"
RANKING = "modelled on A3 (2506.04579), transfer to larger models"
LONGER = "models trained to the end, at d = 8; they were brief, at d = 4"
LEARNERS = {  # by the rule that matches their gradients
    "linear proxy": "the linear proxy",
    "prefix": "a prefix of one-layer attention",
    "half proxy": "a proxy which sees half of the covariates",
}


def numbers(dataset) -> "Transfer":
    return Transfer(dataset)


class Transfer:
    """What subsets leave of a random one's error, and rank correlations with the one layer."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.larger = [name for name in dataset.target.values if name != SMALL]

    @cached_property
    def ratios(self):  # [run, target, rule]
        """Error of the chosen subset over that of the median random one, in each run's median
        pool."""
        ratio = (self.dataset.chosen / self.dataset.random.median("subset")).median("pool")
        return ratio.transpose("run", "target", "rule")

    def ratio(self, rule, target=None):  # [run, target], or [run] of one target
        return self.ratios.sel(target=self.larger if target is None else target, rule=rule)

    def rank(self, subsets):  # [R]
        """The correlation of one layer with the target where that is least."""
        pairs = self.dataset.spearman.sel(target=SMALL, other=self.larger, subsets=subsets)
        return worst(pairs.transpose("run", ...), least)

    def rank_of_gap(self, gradients, target):  # [run, target], or [run] of one target
        return self.dataset.by_gap.transpose("run", ...).sel(gradients=gradients, target=target)

    def bayes_ratios(self):  # [target]
        """How far from the best: the median error after random subsets over the Bayes rule's."""
        axes = ["run", "pool", "subset"]
        return self.dataset.random.median(axes) / self.dataset.bayes.median(axes)


def geometric_mean(ratio):  # [run, target] -> [R]
    return np.exp(np.log(ratio).mean("target")).values


def least(runs):
    return -np.median(runs)


def statements(config) -> tuple[Statement, ...]:
    added = partial(Statement, statistic="median")
    fresh = f"{config.runs} fresh runs, 12 before"
    median = partial(added, revision=LONGER, redrawn=fresh)
    place = f"at the worst of {len(targets(config)) - 1} targets"
    over_random = "the error over that of the median random subset"
    correlation, shortest = "the mean over pools of Spearman's correlation", min(config.descents)
    return (
        median(
            "every_target",
            TRANSFER,
            "Subsets that match gradients of {learner} help every larger model",
            f"{over_random}, {place}",
            at_most=1.0,
            label="{rule}, worst model",
            sample=lambda t, rule: worst(t.ratio(rule)),
            cells=grid("proxy prefix", rule=("linear proxy", "prefix")),
            words=lambda rule: dict(learner=LEARNERS[rule]),
            message="Subsets that match gradients of the linear proxy or of a prefix of one-layer "
            "attention help every larger model",
        ),
        added(
            "targets_on_average",
            TRANSFER,
            "Subsets that match gradients of {learner} help larger models on average",
            f"{over_random}, geometric mean of the targets",
            at_most=1.0,
            revision="{change}",
            redrawn="{fresh}",
            label="{rule}, on average",
            sample=lambda t, rule: geometric_mean(t.ratio(rule)),
            cells=grid("proxy_on_average prefix_on_average half_on_average", rule=LEARNERS),
            words=lambda rule: dict(
                learner=LEARNERS[rule],
                change="" if rule == "half proxy" else f"added; {LONGER}",
                fresh="" if rule == "half proxy" else fresh,
            ),
            message="Subsets that match gradients of a small learner help larger models on average",
        ),
        median(
            "mismatching",
            "A3 (2506.04579), figure 4, in our setting",
            "Subsets that mismatch gradients harm every larger model",
            f"{over_random}, at the target with the least harm",
            at_least=1.0,
            label="mismatched, least harm",
            sample=lambda t: worst(t.ratio("mismatched"), least),
        ),
        median(
            "literal",
            "derived here",
            "A prefix's gradients, a linear map of the proxy's, choose as well as these",
            f"the prefix's error over the linear proxy's, {place}",
            at_most=1.1,
            label="prefix / linear proxy, worst",
            sample=lambda t: worst(t.ratio("prefix") / t.ratio("linear proxy")),
        ),
        median(
            "rank",
            RANKING,
            "{subject} rank alike on one layer and {where} larger model",
            f"{correlation}, {place}",
            at_least=0.5,
            label="{row}",
            sample=lambda t, subsets: t.rank(subsets),
            cells=grid("rank_all rank_random", subsets=("all", "random")),
            words=lambda subsets: (
                dict(subject="Random subsets", where="on every", row="random ones")
                if subsets == "random"
                else dict(
                    subject="Chosen, mismatched and random subsets",
                    where="every",
                    row="all subsets",
                )
            ),
            message="Subsets rank alike on one layer and on every larger model, all of them and "
            "random ones alone",
        ),
        added(
            "half_loss",
            RANKING,
            "A proxy that sees half of the covariates chooses as well as one that sees all",
            "its error over the linear proxy's, geometric mean of the targets",
            at_most=1.1,
            label="half / linear proxy, on average",
            sample=lambda t: geometric_mean(t.ratio("half proxy") / t.ratio("linear proxy")),
        ),
        added(
            "deep",
            RANKING,
            f"Subsets that match gradients of a prefix of {shortest} layers help the model of one "
            "layer",
            over_random,
            at_most=1.0,
            label="deep prefix, one layer",
            sample=lambda t: t.ratio("deep prefix", SMALL).values,
        ),
        added(
            "deep_loss",
            RANKING,
            "They help the model of one layer as those of its own prefix do",
            "the error over that of its own prefix",
            at_most=1.1,
            label="deep / own prefix, one layer",
            sample=lambda t: (t.ratio("deep prefix", SMALL) / t.ratio("prefix", SMALL)).values,
        ),
        added(
            "rank_gap",
            RANKING,
            "Random subsets that match gradients of the one-layer prefix better teach larger "
            "models better",
            f"{correlation} of gap and error, mean of the targets",
            at_least=0.5,
            label="gap and error",
            sample=lambda t: t.rank_of_gap("prefix", t.larger).mean("target").values,
        ),
        added(
            "rank_gap_deep",
            RANKING,
            f"Random subsets that match gradients of the prefix of {shortest} layers better teach "
            "one layer better",
            f"{correlation} of gap and error",
            at_least=0.5,
            label="deep gap, one layer",
            sample=lambda t: t.rank_of_gap("deep prefix", SMALL).values,
        ),
    )
