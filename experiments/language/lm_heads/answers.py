"""How far answers change with heads closed: importances, effective heads, and margins kept."""

from functools import cached_property

import numpy as np

from experiments.language.lm_heads.config import MASKS
from lsa_lab.judging.statistics import spearman
from lsa_lab.lm import readings
from lsa_lab.store import results


class Heads:
    """One data set's answers with heads closed, and what common maps miss."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.number = dataset.sizes["head"]
        self.few = self.config.searched  # the first sentences, on which heads were chosen

    def scores(self, name) -> np.ndarray:  # [R, ..., B, C]
        """Scores of the sentences after the first few."""
        return _ordered(self.dataset[name], "sentence")[..., self.few :, :]

    @cached_property
    def importances(self):  # {reading: [R, layer, H]}
        """How much each head matters to the fresh sentences, by every reading."""
        whole, zero, mean = map(self.scores, ("whole", "zero", "mean"))
        right = self.dataset.right.transpose("run", "sentence").values[:, self.few :]
        return {
            "rise": losses(zero, right[:, None, None]) - losses(whole, right)[:, None, None],
            "change": changes(whole[:, None, None], zero),
            "mean": changes(whole[:, None, None], mean),
        }

    def count(self, reading):  # [R, layer]
        """The effective heads of each layer."""
        return pseudo_values(self.importances[reading])

    def first(self, reading):  # [R]
        """The share of the first layer's heads that is effective."""
        return self.count(reading)[:, 0] / self.number

    def later(self, reading):  # [R]
        """The effective heads of a later layer, a mean over these."""
        return self.count(reading)[:, 1:].mean(1)

    def changes_without(self, name):  # [R, layer]
        """The change of answers with all heads of a layer closed, or all but its top one."""
        return changes(self.scores("whole")[:, None], self.scores(name))

    @cached_property
    def share_left(self):  # [R, layer]
        return np.log(self.changes_without("top_kept") / self.changes_without("none"))

    @cached_property
    def order_kept(self):  # {mask: [R]}
        """Rank correlations of margins with the whole model's, of each mask; of draws means."""
        whole, masked, draws = map(self._margins, ("open", "masked", "drawn"))
        triples = [*zip(whole, masked, draws, strict=True)]
        rows = [[spearman(own, row) for row in every] for own, every, _ in triples]
        of_draws = [np.mean([spearman(own, row) for row in every]) for own, _, every in triples]
        return dict(zip(MASKS, [*np.transpose(rows), np.array(of_draws)], strict=True))

    def _margins(self, name) -> np.ndarray:  # [R, ..., B]
        scores = _ordered(self.dataset[name], "masked_sentence")
        return scores[..., 1] - scores[..., 0]

    def share_missed(self):  # [R]
        """What any function of the word misses after the last layer."""
        return self.dataset.isel(after=-1).by_word.values


def effective_heads(importance) -> np.ndarray:  # [..., H] -> [...]
    """exp(entropy) of the shares of a layer's heads, 0 where none matters."""
    positive = np.maximum(importance, 0)
    total = positive.sum(-1, keepdims=True)
    shares = positive / np.where(total > 0, total, 1)
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(-1)
    return np.where(total[..., 0] > 0, np.exp(entropy), 0)


def pseudo_values(importance) -> np.ndarray:  # [R, ..., H] -> [R, ...]
    """R N(mean) - (R-1) N(mean without a run): their mean is N of the importance averaged over
    runs, less its bias (Quenouille 1956), and their spread that of N."""
    runs = len(importance)
    without = np.stack([np.delete(importance, r, 0).mean(0) for r in range(runs)])
    return runs * effective_heads(importance.mean(0)) - (runs - 1) * effective_heads(without)


def losses(scores, right) -> np.ndarray:  # [..., B, C], [..., B] -> [...]
    rows = readings.log_probabilities(scores)
    labels = np.broadcast_to(right, rows.shape[:-1])
    return -np.take_along_axis(rows, labels[..., None], -1)[..., 0].mean(-1)


def changes(whole, other) -> np.ndarray:  # [..., B, C] x 2 -> [...]
    """KL(whole, other) of the labels' probabilities, averaged over sentences."""
    p, q = readings.log_probabilities(whole), readings.log_probabilities(other)
    return (np.exp(p) * (p - q)).sum(-1).mean(-1)


def _ordered(values, sentence) -> np.ndarray:  # [R, ..., B, C]
    front = [axis for axis in values.dims if axis not in ("run", sentence, "label")]
    return values.transpose("run", *front, sentence, "label").values
