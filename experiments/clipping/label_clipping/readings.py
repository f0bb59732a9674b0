"""What answers ŷ say of two classes: how right, how right at another threshold, how sure."""

import numpy as np

from lsa_lab.lm import readings

NAMES = ("accuracy", "auc", "fitted", "entropy")


def read(answers, batch) -> dict[str, np.ndarray]:  # [R, E, B], Prompt [R, B] -> each [R, E]
    labels = (np.asarray(batch.y_query) > 0).astype(int)
    pairs = zip(answers, labels, strict=True)
    rows = [[_read_edit(margin, own) for margin in edits] for edits, own in pairs]
    return dict(zip(NAMES, np.moveaxis(np.array(rows), -1, 0), strict=True))


def _read_edit(margin, labels) -> tuple[float, ...]:
    scores = np.stack([np.zeros_like(margin), margin], axis=1)
    return (
        readings.accuracy(scores, labels),
        readings.auc(scores, labels),
        readings.accuracy_after_best_shift(scores, labels),
        float(entropy((1 + margin) / 2).mean()),
    )


def entropy(probability):
    """-Σ p log₂ p of a label and the other, in bits; a number beyond [0, 1] is sure."""
    p = np.clip(probability, 0, 1)
    both = np.stack([p, 1 - p])
    return -(both * np.log2(np.where(both > 0, both, 1))).sum(0)
