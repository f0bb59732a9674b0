"""How far answers change with heads closed: importances, effective heads, and margins kept."""

from functools import cached_property

import numpy as np

from experiments.language.lm_heads.config import MASKS
from lsa_lab.judging.statistics import spearman
from lsa_lab.lm import readings
from lsa_lab.store import results


class Heads:
    """One data set's answers with heads closed, and how far heads and maps agree."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.few = self.config.searched

    @cached_property
    def importances(self):  # {reading: [R, layer, H]}
        return importances(self.dataset, self.few)

    def count(self, reading):  # [R, layer], None where rises are not judged
        """The effective heads of each layer."""
        if reading == "rise" and not self.config.rises_judged:
            return None
        return pseudo_values(self.importances[reading])

    def first(self, reading):  # [R]
        count = self.count(reading)
        return None if count is None else count[:, 0] / self.dataset.sizes["head"]

    def later(self, reading):  # [R]
        count = self.count(reading)
        return None if count is None else count[:, 1:].mean(1)

    @cached_property
    def left(self):  # [R, layer]
        return np.log(top_share(self.dataset, self.few))

    def first_over_later(self):  # [R]
        """The change without the first layer's heads over that without a later one's."""
        whole = scores(self.dataset, "whole", self.few)[:, None]
        together = np.log(changes(whole, scores(self.dataset, "none", self.few)))
        return np.exp(together[:, 0] - together[:, 1:].mean(1))

    def slopes(self):  # [R]
        """The agreement of slopes and rises: both of the sentences on which heads are chosen."""
        own = scores(self.dataset, "whole")[:, : self.few]
        right = self.dataset.right.transpose("run", "sentence").values[:, : self.few]
        zero = scores(self.dataset, "zero")[..., : self.few, :]
        rises = losses(zero, right[:, None, None]) - losses(own, right)[:, None, None]
        slopes = -self.dataset.slope.isel(depth=self.dataset.layer.values)
        return agreement(slopes.transpose("run", "depth", "head").values, rises)

    @cached_property
    def kept(self):  # {mask: [R]}
        return margins_kept(self.dataset)

    def missed(self, rows):  # [R]
        """What any function of the word misses after the last layer."""
        last = self.dataset.isel(after=-1)
        return {"rows": last.by_word, "directions": last.direction_by_word}[rows].values


def agreement(left, right) -> np.ndarray:  # [R, layer, H] x 2 -> [R]
    rows = zip(left, right, strict=True)
    return np.array(
        [np.mean([spearman(x, y) for x, y in zip(*pair, strict=True)]) for pair in rows]
    )


def importances(dataset, few) -> dict[str, np.ndarray]:  # {reading: [R, layer, H]}
    """How much each head matters to the fresh sentences, by every reading."""
    whole, zero, mean = (scores(dataset, name, few) for name in ("whole", "zero", "mean"))
    right = dataset.right.transpose("run", "sentence").values[:, few:]
    before = losses(whole, right)
    return {
        "rise": losses(zero, right[:, None, None]) - before[:, None, None],
        "change": changes(whole[:, None, None], zero),
        "mean": changes(whole[:, None, None], mean),
    }


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


def scores(dataset, name, few=0) -> np.ndarray:  # [R, ..., B, C]
    """Scores of the sentences after the first few, on which heads were chosen."""
    return _ordered(dataset[name], "sentence")[..., few:, :]


def losses(scores, right) -> np.ndarray:  # [..., B, C], [..., B] -> [...]
    rows = readings.log_probabilities(scores)
    labels = np.broadcast_to(right, rows.shape[:-1])
    return -np.take_along_axis(rows, labels[..., None], -1)[..., 0].mean(-1)


def changes(whole, other) -> np.ndarray:  # [..., B, C] x 2 -> [...]
    """KL(whole, other) of the labels' probabilities, averaged over sentences."""
    p, q = readings.log_probabilities(whole), readings.log_probabilities(other)
    return (np.exp(p) * (p - q)).sum(-1).mean(-1)


def margins_kept(dataset) -> dict[str, np.ndarray]:  # {mask: [R]}
    """Rank correlations of margins with the whole model's, of each mask; of draws their means."""
    whole, masked, draws = (
        _margins(_ordered(dataset[name], "masked_sentence")) for name in ("open", "masked", "drawn")
    )
    kept = {
        name: np.array([spearman(*pair) for pair in zip(whole, masked[:, i], strict=True)])
        for i, name in enumerate(MASKS[:3])
    }
    of_draws = [
        np.mean([spearman(own, row) for row in rows])
        for own, rows in zip(whole, draws, strict=True)
    ]
    return kept | {MASKS[3]: np.array(of_draws)}


def top_share(dataset, few) -> np.ndarray:  # [R, layer]
    """The change with the top head kept, over that with all heads of the layer closed."""
    whole = scores(dataset, "whole", few)[:, None]
    kept, none = (changes(whole, scores(dataset, name, few)) for name in ("top_kept", "none"))
    return kept / none


def _ordered(values, sentence) -> np.ndarray:  # [R, ..., B, C]
    front = [axis for axis in values.dims if axis not in ("run", sentence, "label")]
    return values.transpose("run", *front, sentence, "label").values


def _margins(scores) -> np.ndarray:  # [..., 2] -> [...]
    return scores[..., 1] - scores[..., 0]
