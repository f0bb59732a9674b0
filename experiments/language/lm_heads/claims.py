"""Effective heads, changes of answers, and what common maps miss."""

import numpy as np

from experiments.language.lm_heads.config import FIRST, MASKS, PRUNED, TOP, statements
from lsa_lab import results
from lsa_lab.lm import readings
from lsa_lab.statistics import spearman


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    numbers = {
        f"{name}_{id}": runs
        for name in dataset.task.values
        for of in (_of_readings, _of_layers, _of_parts, _of_maps)
        for id, runs in of(dataset.sel(task=name), config.searched).items()
    }
    ids = {statement.id for statement in statements(config)}
    return {id: runs for id, runs in numbers.items() if id in ids}


def importances(dataset, few) -> dict[str, np.ndarray]:  # {reading: [R, layer, H]}
    """How much each head matters to the fresh sentences, by every reading."""
    whole, zero, mean = (judged(dataset, name, few) for name in ("whole", "zero", "mean"))
    right = dataset.right.transpose("run", "sentence").values[:, few:]
    before = losses(whole, right)
    return {
        "rise": losses(zero, right[:, None, None]) - before[:, None, None],
        "change": changes(whole[:, None, None], zero),
        "mean": changes(whole[:, None, None], mean),
    }


def effective(importance) -> np.ndarray:  # [..., H] -> [...]
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
    return runs * effective(importance.mean(0)) - (runs - 1) * effective(without)


def judged(dataset, name, few=0) -> np.ndarray:  # [R, ..., B, C]
    """Scores of the sentences after the first few, on which heads were chosen."""
    return _scores(dataset[name], "sentence")[..., few:, :]


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
        _margins(_scores(dataset[name], "masked_sentence")) for name in ("open", "masked", "drawn")
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


def left_with_top(dataset, few) -> np.ndarray:  # [R, layer]
    """The change with the top head kept, over that with all heads of the layer closed."""
    whole = judged(dataset, "whole", few)[:, None]
    kept, none = (changes(whole, judged(dataset, name, few)) for name in ("top_kept", "none"))
    return kept / none


def _of_readings(dataset, few):
    numbers, heads = {}, dataset.sizes["head"]
    for reading, importance in importances(dataset, few).items():
        count = pseudo_values(importance)
        numbers[f"first_{reading}"] = count[:, 0] / heads
        numbers[f"later_{reading}"] = count[:, 1:].mean(1)
    return numbers


def _of_layers(dataset, few):
    left = np.log(left_with_top(dataset, few))
    whole = judged(dataset, "whole", few)[:, None]
    together = np.log(changes(whole, judged(dataset, "none", few)))
    # Slopes are those of the sentences on which heads are chosen, and so are these rises.
    own, right = judged(dataset, "whole")[:, :few], dataset.right.transpose("run", "sentence")
    right = right.values[:, :few]
    zero = judged(dataset, "zero")[..., :few, :]
    rises = losses(zero, right[:, None, None]) - losses(own, right)[:, None, None]
    slopes = -dataset.slope.isel(depth=dataset.layer.values)
    readings_of = importances(dataset, few)
    return {
        "one_is_enough": np.exp(left[:, 1:].mean(1)),
        "one_is_too_few": np.exp(left[:, 0]),
        "first_layer": np.exp(together[:, 0] - together[:, 1:].mean(1)),
        "slopes": _agreement(slopes.transpose("run", "depth", "head").values, rises),
        "ablations": _agreement(readings_of["change"], readings_of["mean"]),
    }


def _of_parts(dataset, few):
    kept = margins_kept(dataset)
    return {
        "pruned": kept[PRUNED],
        "first_pruned": kept[PRUNED] - kept[FIRST],
        "top_heads": kept[TOP] - kept[MASKS[3]],
    }


def _of_maps(dataset, few):
    last = dataset.isel(after=-1)
    return {
        "map": last.by_word.values,
        "map_relative": last.direction_by_word.values,
    }


def _agreement(left, right) -> np.ndarray:  # [R, layer, H] x 2 -> [R]
    rows = zip(left, right, strict=True)
    return np.array(
        [np.mean([spearman(x, y) for x, y in zip(*pair, strict=True)]) for pair in rows]
    )


def _scores(values, sentence) -> np.ndarray:  # [R, ..., B, C]
    front = [axis for axis in values.dims if axis not in ("run", sentence, "label")]
    return values.transpose("run", *front, sentence, "label").values


def _margins(scores) -> np.ndarray:  # [..., 2] -> [...]
    return scores[..., 1] - scores[..., 0]
