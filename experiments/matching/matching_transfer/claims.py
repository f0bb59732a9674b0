"""What `matching_transfer` judges: errors after chosen subsets, and who ranks random ones alike;
medians over pools, then over runs: linear stacks explode on rare subsets."""

from functools import cached_property, partial

import numpy as np

from experiments.matching.matching_transfer.config import (
    BAYES,
    GRADIENTS,
    SMALL,
    STACK,
    TRAINED,
    TUNED,
)
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst

A3 = "A3 (2506.04579)"
TRANSFER = f"{A3}, abstract, in our setting"
BRIEF = "models are trained to the end, at d = 8; they were trained briefly, at d = 4"
PREFIXES = "prefixes stand before one layer of attention, and before a trained linear stack"
FEWEST_POOLS = 5  # of a run: fewer have no median that rare bad subsets leave alone


class Transfer:
    """What subsets leave of a random one's error, and rank correlations over random subsets."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.larger = [name for name in dataset.target.values if name != SMALL]

    @cached_property
    def ratios(self):  # [run, target, rule]
        """Error of the chosen subset over that of the median random one, in each run's median
        pool."""
        ratio = (self.dataset.chosen / self.dataset.random.median("subset")).median("pool")
        return ratio.transpose("run", "target", "rule")

    def ratio(self, rule):  # [run, target]
        return self.ratios.sel(target=self.larger, rule=rule)

    def diverse_ratio(self, rule, target):  # [R]
        """The chosen subset's error over that of a determinantal one, in each run's median pool."""
        error = self.dataset.chosen.sel(target=target)
        return (error.sel(rule=rule) / error.sel(rule="determinantal")).median("pool").values

    def rank(self, proxy, target):  # [R]
        """The correlation of the proxy's errors with the target's."""
        return self.dataset.spearman.sel(target=proxy, other=target).values

    def rank_of_tuned(self, learner, model):  # [R]
        return self.dataset.by_tuned.sel(learner=learner, model=model).values

    def bayes_ratios(self):  # [target]
        """How far from the best: the median error after random subsets over the Bayes rule's."""
        axes = ["run", "pool", "subset"]
        return self.dataset.random.median(axes) / self.dataset.bayes.median(axes)


numbers = Transfer


def least(runs):
    return -np.median(runs)


def statements(config) -> tuple[Statement, ...]:
    place = f"at the worst of {len(config.descents) + len(config.models)} targets"
    correlation = "the mean over pools of Spearman's correlation over random subsets"
    fresh = f"{config.runs} fresh runs of {config.pools} pools, 36 and 12 before"
    again = partial(Statement, statistic="median", redrawn=fresh)

    def bounded(**bound):
        """The bound of a row on the median pool, which means nothing over too few pools."""
        few = f"{config.pools} pools, and a verdict takes {FEWEST_POOLS}, set after a look"
        return bound if config.pools >= FEWEST_POOLS else {"unjudged": few}

    return (
        again(
            "every_target",
            TRANSFER,
            "Subsets that match gradients of the {rule} help every target",
            f"the error over that of the median random subset, in each run's median pool, {place}",
            **bounded(at_most=1.0),
            note=PREFIXES,
            revision=f"{BRIEF}; the stack prefix is added; the words did not name the pool, and "
            "said larger models",
            sample=lambda t, rule: worst(t.ratio(rule)),
            cells=grid("proxy prefix stack", rule=GRADIENTS),
        ),
        again(
            "over_diverse",
            f"modelled on {A3}, baselines",
            "Subsets that match gradients of the {rule} help the {target} more than determinantal "
            "subsets, chosen without a gradient, do",
            "the error over that of the determinantal subset, in each run's median pool",
            **bounded(at_most=1.0),
            revision="added as a null, of trained targets alone, for descents explode after such "
            "subsets; the words did not name the pool",
            sample=lambda t, rule, target: t.diverse_ratio(rule, target),
            cells=grid(
                "proxy_over_diverse_linear proxy_over_diverse_softmax "
                "proxy_over_diverse_transformer prefix_over_diverse_linear "
                "prefix_over_diverse_softmax prefix_over_diverse_transformer "
                "stack_over_diverse_linear stack_over_diverse_softmax "
                "stack_over_diverse_transformer",
                rule=GRADIENTS,
                target=TRAINED,
            ),
            message="Subsets that match gradients help trained models more than determinantal ones",
        ),
        again(
            "mismatching",
            f"{A3}, figure 4, in our setting",
            "Subsets that mismatch gradients harm every larger model",
            "the error over that of the median random subset, in each run's median pool, at the "
            "target with the least harm",
            **bounded(at_least=1.0),
            revision=BRIEF,
            sample=lambda t: worst(t.ratio("mismatched"), least),
        ),
        again(
            "rank_random",
            f"modelled on {A3}, transfer to larger models",
            "Random subsets rank alike on one layer and on every larger model",
            f"{correlation}, {place}",
            at_least=0.5,
            revision=BRIEF,
            sample=lambda t: worst(np.transpose([t.rank(SMALL, each) for each in t.larger]), least),
        ),
        again(
            "stack_ranks",
            TRANSFER,
            "Random subsets rank alike on a trained linear stack and on the {target}, a proxy of "
            "another architecture",
            f"{correlation} of both models' errors",
            at_least=0.5,
            revision="added: rows on chosen subsets had hidden that ranks do not transfer",
            sample=lambda t, target: t.rank(STACK, target),
            cells=grid("stack_ranks_softmax stack_ranks_transformer", target=TRAINED[1:]),
        ),
        again(
            "fine_tuning",
            f"{A3}, abstract, hypothesis, in our setting",
            "The {tuned}, fine-tuned on a random subset, errs as the {model} does in context",
            f"{correlation} of both errors",
            at_least=0.5,
            revision="added: other rows had asked for it only through gaps",
            sample=lambda t, tuned, model: t.rank_of_tuned(tuned, model),
            cells=grid(
                "linear_tuned_as_linear linear_tuned_as_softmax linear_tuned_as_transformer "
                "own_tuned_as_linear own_tuned_as_softmax own_tuned_as_transformer",
                tuned=TUNED,
                model=TRAINED,
            ),
            message="A learner fine-tuned on a random subset errs as trained models do in context",
        ),
        again(
            "bayes",
            "derived here, a control",
            "The Bayes rule errs on the random subsets on which the {model} errs in context",
            f"{correlation} of both errors",
            unjudged="it is what a learner that is not fine-tuned gives",
            revision="added with the rows on fine-tuning",
            sample=lambda t, model: t.rank_of_tuned(BAYES, model),
            cells=grid("bayes_as_linear bayes_as_softmax bayes_as_transformer", model=TRAINED),
        ),
    )
