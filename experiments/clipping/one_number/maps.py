"""Maps of answers with one number or two, and what is read of answers mapped or edited."""

import numpy as np

from experiments.clipping.one_number.config import (
    AFFINE,
    CALIBRATED,
    CUBIC,
    MAPS,
    MULTIPLE,
    RULES,
    SEARCHES,
    SIZED,
    THRESHOLD,
    UNEDITED,
)
from lsa_lab.lm import readings


def accuracy(answers, batch) -> float:
    return readings.accuracy(_scores(answers), _labels(batch))


def fit(answers, batch) -> float:
    """Less the mean squared error."""
    return -float(((answers - np.asarray(batch.y_query)) ** 2).mean())


def _scores(answers):  # [B] -> [B, 2]
    return np.stack([np.zeros_like(answers), answers], axis=1)


def _labels(batch):
    return (np.asarray(batch.y_query) > 0).astype(int)


def read_classes(pairs, free, validation, test):  # -> [rule, reading]
    """Accuracy, AUC, and the cross-entropy after an affine map of each rule's own answers."""
    plain, unedited = pairs[UNEDITED]
    labels = _labels(validation), _labels(test)
    shift = readings.best_threshold_shift(_scores(plain), labels[0])
    pairs = pairs | {
        THRESHOLD: (plain + shift, unedited + shift),
        CALIBRATED: (plain - free[0], unedited - free[1]),
    }
    rows = []
    for first, own in (pairs[name] for name in RULES):
        after = readings.map_scores(_scores(own), *readings.best_affine(_scores(first), labels[0]))
        rows.append(
            [
                readings.accuracy(_scores(own), labels[1]),
                readings.auc(_scores(own), labels[1]),
                readings.cross_entropy(after, labels[1]),
            ]
        )
    return rows


def read_regression(pairs, validation, test):  # -> [M + 2 S]
    """Gains of maps and of edits over the unedited risk, and of edits beyond the affine map, each
    followed by an affine map of its own."""
    plain, unedited = pairs[UNEDITED]
    risk = -fit(unedited, test)
    mapped = {name: mapped_risk(name, plain, unedited, validation, test) for name in MAPS}
    edits = [pairs[name] for name in SEARCHES]
    after = [mapped_risk(AFFINE, *pair, validation, test) for pair in edits]
    return [
        *(1 - mapped[name] / risk for name in MAPS),
        *(1 + fit(own, test) / risk for _, own in edits),
        *(1 - own / mapped[AFFINE] for own in after),
    ]


def mapped_risk(name, plain, unedited, validation, test) -> float:
    """The risk of the map of answers that is best, by least squares, on validation."""

    def features(answers, batch):
        size = np.sqrt((np.asarray(batch.y, float) ** 2).mean(-1))
        columns = {
            MULTIPLE: [answers],
            AFFINE: [answers, np.ones_like(answers)],
            SIZED: [answers, answers * size],
            CUBIC: [answers, answers**3],
        }
        return np.stack(columns[name], axis=1)

    rows, target = features(plain, validation), np.asarray(validation.y_query, float)
    weights = np.linalg.lstsq(rows, target, rcond=None)[0]
    most = 2 * np.abs(np.asarray(test.y, float)).max(-1)
    return -fit(np.clip(features(unedited, test) @ weights, -most, most), test)
