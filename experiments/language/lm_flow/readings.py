"""Flows of one data set by layer, what a demonstration is worth, and what rules make of a pool."""

import numpy as np
from scipy.stats import rankdata

from experiments.language.lm_flow.config import FACTORS
from lsa_lab.judging.statistics import best_elsewhere, spearman
from lsa_lab.store import parts, results

RIVALS = ("random", "similarity", "BM25", "contribution")  # in prompts of several demonstrations


class Numbers:
    """The flows and the pools of every data set."""

    def __init__(self, dataset):
        main, grads = parts.part(dataset), parts.part(dataset, "grads")
        self.flows = {name: Flows(main.sel(task=name)) for name in main.task.values}
        self.pools = {name: Pools(grads.sel(task=name)) for name in grads.task.values}


class Flows:
    """Log ratios of flows by layer, and the worth of single demonstrations."""

    def __init__(self, dataset):
        self.dataset = dataset
        of_single = ("run", "single", "fresh")
        self.worth = dataset.worth.transpose(*of_single).values
        self.same_label = dataset.same_label.transpose(*of_single).values.astype(bool)
        relevance = dataset.relevance.transpose(*of_single).values
        novelty = np.broadcast_to(dataset.novelty.values[..., None], relevance.shape)
        both = _ranks(relevance) + _ranks(novelty)
        self.factors = dict(zip(FACTORS, (relevance, novelty, both), strict=True))

    def ratios(self, mode, read):  # [R, pairs, query, L]
        """Log ratios of all pairs, the earlier sentence over the later: no outcome decides. Log
        flows in a shared prompt are means over rotations: each place counts once."""
        logs = self.dataset[mode].sel(read=read)
        logs = logs.mean("rotation") if "rotation" in logs.dims else logs
        logs = logs.transpose("run", "demonstration", "query", "layer").values
        first, second = np.triu_indices(logs.shape[1], 1)
        return logs[:, first] - logs[:, second]

    def disparities(self, mode, read):  # [R, L]
        """The mean |log ratio| of a layer over that of the first."""
        sizes = np.abs(self.ratios(mode, read)).mean((1, 2))
        return sizes / sizes[:, :1]

    def turns(self):  # [R]
        """The share of pairs whose flows of the margin change their order from first to last."""
        ends = self.ratios("shared", "margin")[..., [0, -1]]
        return (ends[..., 0] * ends[..., 1] < 0).mean((1, 2))

    def label_effect(self):  # [R]
        """The mean worth of those that have the query's label less that of the others."""
        runs = zip(self.worth, self.same_label, strict=True)
        return np.array([own[same].mean() - own[~same].mean() for own, same in runs])

    def correlation(self, factor):  # [R]
        """The rank correlation of a factor and worth."""
        runs = zip(self.factors[factor], self.worth, strict=True)
        return np.array([spearman(x.ravel(), y.ravel()) for x, y in runs])


def _ranks(values):  # [R, ...]
    return rankdata(values.reshape(len(values), -1), axis=1).reshape(values.shape)


class Pools:
    """Scores [R, m, B] of m demonstrations before B queries, and the answers after prompts."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.worth = dataset.worth.transpose("run", "demonstration", "query").values

    def predicts(self, rule):  # [R]
        score = self.dataset.score.sel(rule=rule)
        return correlations(score.transpose("run", "demonstration", "query").values, self.worth)

    def last_layer(self):  # [R]
        """What the flow after the last layer predicts less what the best earlier one does."""
        axes = ("layer", "run", "demonstration", "query")
        flows = self.dataset.flow.sel(read="margin").transpose(*axes).values
        predicts = np.stack([correlations(of_layer, self.worth) for of_layer in flows], axis=-1)
        return predicts[:, -1] - best_elsewhere(predicts[:, :-1])

    def margins(self, rule):  # log odds of the second label [K, R, B]
        """After the prompts that a rule selects: one for each query, of random choices K."""
        if rule == "random":
            return self.dataset.random_prompt.transpose("draw", "run", "query").values
        return self.dataset.prompt.sel(rule=[rule]).transpose("rule", "run", "query").values

    def log_probabilities(self, rule):  # [R, B]
        """Those of the right label after these prompts."""
        signs = 2 * self.dataset.label.transpose("run", "query").values - 1
        return -np.logaddexp(0, -signs * self.margins(rule)).mean(0)

    def gain(self, rule, rival="random"):  # [R], in nats
        return (self.log_probabilities(rule) - self.log_probabilities(rival)).mean(-1)

    def prompts(self, rule, rival):  # [R], None where there are too few queries
        return self.gain(rule, rival) if self.config.prompts_judged else None


def correlations(left, right):  # [R, m, B] x 2 -> [R]
    """The rank correlation over the pool, averaged over a run's queries."""
    runs = zip(left, right, strict=True)
    return np.array(
        [np.mean([spearman(*pair) for pair in zip(x.T, y.T, strict=True)]) for x, y in runs]
    )
