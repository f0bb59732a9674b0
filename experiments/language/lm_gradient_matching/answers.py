"""Readings of the answers after every subset, and after the choices of every rule."""

from functools import cached_property

import numpy as np

from experiments.language.lm_gradient_matching.config import DRAWN, RULES
from lsa_lab.judging.statistics import spearman
from lsa_lab.lm import readings

BEST = "best of 5"
RIVALS = ("random", BEST, "k-means")


class Answers:
    """What is judged of one data set, at the number of demonstrations that is."""

    def __init__(self, dataset):
        self.dataset = dataset

    @cached_property
    def logs(self):  # {rule: [R]}
        return {rule: np.log(losses) for rule, losses in rule_readings(self.dataset).items()}

    @cached_property
    def shifted(self):  # {rule: [R]}
        return rule_readings(self.dataset, readings.cross_entropy_after_best_shift)

    def over(self, rule, rival):  # [R]
        """The cross-entropy after a rule over that after its rival, or the mean of three rivals."""
        if rival == "shifted":
            return self.shifted[rule] / self.shifted["random"]
        if rival == "rivals":
            return np.exp(self.logs[rule] - np.mean([self.logs[each] for each in RIVALS], axis=0))
        return np.exp(self.logs[rule] - self.logs[rival])

    def shares(self):  # [R]
        divergence = self.dataset.divergence.transpose("run", "subset").values
        place = self.dataset.rule.values.tolist().index("matching")
        return divergence[:, place] / self.dataset.random_divergence.values

    def ranks(self):  # [R]
        """The rank correlation of gap and cross-entropy of the subsets that nobody chose."""
        unchosen = np.isin(self.dataset.rule.values, DRAWN)
        gap = self.dataset.gap.transpose("run", "subset").values
        runs = zip(gap, subset_readings(self.dataset), strict=True)
        return np.array([spearman(g[unchosen], x[unchosen]) for g, x in runs])


def rule_readings(dataset, reading=readings.cross_entropy) -> dict[str, np.ndarray]:  # {rule: [R]}
    """A reading of one task and size: geometric means over the prompts of a rule, and the draw that
    answers the validation best."""
    values = subset_readings(dataset, reading)
    rules = dataset.rule.values
    means = {rule: geometric_mean(values[:, rules == rule]) for rule in (*RULES, *DRAWN)}
    return means | {BEST: np.take_along_axis(values, best_draw(dataset)[:, None], 1)[:, 0]}


def subset_readings(dataset, reading=readings.cross_entropy) -> np.ndarray:  # [R, S]
    """A reading of the answers after every subset."""
    scores = dataset.score.transpose("run", "subset", "sentence", "label").values
    right = dataset.right.transpose("run", "sentence").values
    return np.array([[reading(s, y) for s in rows] for rows, y in zip(scores, right, strict=True)])


def best_draw(dataset) -> np.ndarray:  # [R]
    """Where among the subsets the random one stands that answers the validation best."""
    axes = ("run", "draw", "validation", "label")
    scores = dataset.validation_score.transpose(*axes).values
    right = dataset.validation_right.transpose("run", "validation").values
    losses = [
        [readings.cross_entropy(s, y) for s in rows] for rows, y in zip(scores, right, strict=True)
    ]
    first = dataset.rule.values.tolist().index("random")
    return first + np.argmin(losses, axis=1)


def geometric_mean(values: np.ndarray) -> np.ndarray:  # [R, S] -> [R]
    return np.exp(np.log(values).mean(1))
