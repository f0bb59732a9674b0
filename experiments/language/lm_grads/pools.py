"""One data set's pools: what rules score, what demonstrations are worth, and selected prompts."""

from functools import cached_property

import numpy as np

from lsa_lab.judging.statistics import best_elsewhere, spearman
from lsa_lab.lm import readings
from lsa_lab.store import results

SCORED = {  # rule, what it is
    "margin": ("GradS", "the flow of the label margin after the last layer"),
    "row": ("GradS, row", "the flow of the query's row after the last layer"),
    "offline": ("GradS, Eq. 2", "A1's Eq. 2, offline, with the attention of the last layer,"),
    "contribution": (
        "contribution",
        "how far a demonstration changes the label margin, either way,",
    ),
    "similarity": ("similarity", "the similarity of hidden rows"),
    "bm25": ("BM25", "BM25"),
}
READS = ("margin", "row")  # whose flow GradS goes by
RIVALS = ("random", "similarity", "BM25", "contribution")  # in prompts of several demonstrations


class Pools:
    """Scores [R, m, B] of m demonstrations before B queries, and the answers after prompts."""

    def __init__(self, dataset):
        self.dataset = dataset

    @cached_property
    def config(self):
        return results.config_of(self.dataset)

    @cached_property
    def worth(self):  # [R, m, B]
        """What each demonstration adds to the log-probability of the query's label, alone."""
        return self.dataset.worth.transpose("run", "demonstration", "query").values

    def score(self, rule):  # [R, m, B]
        return self.dataset.score.sel(rule=rule).transpose("run", "demonstration", "query").values

    def agreement(self, rule, other):  # [R]
        return correlations(self.score(rule), self.score(other))

    def predicts(self, rule):  # [R]
        return correlations(self.score(rule), self.worth)

    def measures(self, rule):  # [R]
        return correlations(self.score(rule), np.abs(self.worth))

    def goes_by_length(self, rule):  # [R]
        lengths = self.dataset.length.transpose("run", "demonstration").values[..., None]
        return correlations(self.score(rule), lengths)

    def gains(self, rule):  # [R]
        """The mean worth of the demonstrations that a rule selects over that of the pool, each
        alone: the expectation of a random choice."""
        chosen = self.score(rule).argsort(axis=1, kind="stable")[:, -self.config.shots :]
        selected = np.take_along_axis(self.worth, chosen, axis=1).mean(1)
        return (selected - self.worth.mean(1)).mean(-1)

    def layer_curves(self, read):  # correlations with worth, spreads of the log flow [R, L] x 2
        """What the flow after each layer predicts, and how far apart it is over a pool."""
        axes = ("layer", "run", "demonstration", "query")
        flows = self.dataset.flow.sel(read=read).transpose(*axes).values
        predicts = np.stack([correlations(of_layer, self.worth) for of_layer in flows], axis=-1)
        return predicts, flows.std(axis=2).mean(-1).T

    def last_layer(self):  # [R]
        predicts, _ = self.layer_curves("margin")
        return predicts[:, -1] - best_elsewhere(predicts[:, :-1])

    def discriminates(self):  # [R]
        _, spreads = self.layer_curves("margin")
        return spreads[:, -1] / best_elsewhere(spreads[:, :-1])

    def margins(self, rule):  # log odds of the second label [K, R, B]
        """After the prompts that a rule selects: one for each query, of random choices K."""
        if rule == "random":
            return self.dataset.random_prompt.transpose("draw", "run", "query").values
        if rule == "no demonstrations":
            before = self.dataset.before.transpose("class", "run", "query").values
            return before[1:] - before[:1]
        return self.dataset.prompt.sel(rule=[rule]).transpose("rule", "run", "query").values

    def log_probabilities(self, rule):  # [R, B]
        """Those of the right label after these prompts."""
        signs = 2 * self.dataset.label.transpose("run", "query").values - 1
        return -np.logaddexp(0, -signs * self.margins(rule)).mean(0)

    def aucs(self, rule):  # [R]
        """The share of pairs of queries, one of each label, that prompts of a rule put in order; of
        random choices the mean over them."""
        labels = self.dataset.label.transpose("run", "query").values
        runs = zip(labels, self.margins(rule).swapaxes(0, 1), strict=True)
        of_draw = [
            [readings.auc(np.stack([0 * row, row], axis=1), own) for row in rows]
            for own, rows in runs
        ]
        return np.mean(of_draw, axis=1)

    def prompts(self, rule, rival):  # [R], None where there are too few queries
        if not self.config.prompts_judged:
            return None
        return (self.log_probabilities(rule) - self.log_probabilities(rival)).mean(-1)

    def apart(self, rule, rival):  # [R], None where there are too few queries
        if not self.config.prompts_judged:
            return None
        if rival == "strongest":
            others = best_elsewhere(np.stack([self.aucs(other) for other in RIVALS], axis=1))
        else:
            others = self.aucs(rival)
        return self.aucs(rule) - others


def rule_of(score) -> str:
    return SCORED[score][0]


def correlations(left, right):  # [R, m, B] x 2 -> [R]
    """The rank correlation over the pool, averaged over a run's queries."""
    runs = zip(left, np.broadcast_to(right, left.shape), strict=True)
    return np.array(
        [np.mean([spearman(*pair) for pair in zip(x.T, y.T, strict=True)]) for x, y in runs]
    )
