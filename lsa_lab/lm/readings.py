"""Accuracy, F1 and AUC of label scores, with and without a constant bias.

Scores [B, C] are logits or log-probabilities of the C labels after B queries, labels [B] the right
ones. Readings compare labels with each other only, p(c | query) = softmax_c(scores), in float64.
"""

from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp


def accuracy(scores: Any, labels: Any) -> float:
    """Return the share of queries whose right label scores most; m equal scores share it."""
    s, y = _check(scores, labels)
    best = s == s.max(1, keepdims=True)
    return float((best[np.arange(len(y)), y] / best.sum(1)).mean())


def f1(scores: Any, labels: Any, positive: int | None = None) -> float:
    """Return F1 = 2 TP / (2 TP + FP + FN) of one class, or its mean over all classes.

    The answer to a query is its first label with the largest score. A class that is neither right
    nor answered has F1 = 0.
    """
    from sklearn.metrics import f1_score

    s, y = _check(scores, labels)
    classes = range(s.shape[1]) if positive is None else (positive,)
    means = dict(labels=list(classes), average="macro", zero_division=0)
    return float(f1_score(y, s.argmax(1), **means))


def auc(scores: Any, labels: Any) -> float:
    """Return the share of pairs in which the query of a class has the larger log-odds of it.

    For two classes it is P(z > z') + P(z = z') / 2, z = s_1 - s_0 of a query of class 1 and z' that
    of one of class 0: no constant added to a class changes it. For more it is the mean over classes
    of one against the others, by log p / (1 - p), which a constant does change.
    """
    s, y = _check(scores, labels)
    classes = range(s.shape[1])
    _check_classes(y, len(classes))
    if len(classes) == 2:
        return _pair_share(s[:, 1] - s[:, 0], y == 1)
    others = [logsumexp(np.delete(s, c, axis=1), axis=1) for c in classes]
    return float(np.mean([_pair_share(s[:, c] - others[c], y == c) for c in classes]))


def best_threshold_shift(scores: Any, labels: Any) -> float:
    """Return the constant b, added to the log-odds of class 1, of greatest accuracy.

    It lies halfway between two queries; of several the one of least |b|.
    """
    s, y = _check(scores, labels)
    if s.shape[1] != 2:
        raise ValueError(f"scores of {s.shape[1]} labels: a shift of the log-odds needs two")
    _check_classes(y, 2)
    z = s[:, 1] - s[:, 0]
    levels = np.unique(z)
    shifts = -np.concatenate(
        [levels[:1] - 1, (levels[1:] + levels[:-1]) / 2, levels[-1:] + 1, [0.0]]
    )
    right = [np.mean(np.where(z + b == 0, 0.5, (z + b > 0) == y)) for b in shifts]
    best = shifts[np.isclose(right, max(right), rtol=0, atol=1e-12)]
    return float(best[np.argmin(np.abs(best))])


def affine_share(before: Any, after: Any) -> float:
    """Return the share of an edit's change of answers that an affine map of them accounts for.

    1 - |z' - a z - b|² / |z' - z|² with the best a and b, which does not depend on the size of the
    change. The mean squares have B - 2 and B degrees of freedom.
    """
    z, edited = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if z.ndim != 1 or z.shape != edited.shape or len(z) < 3:
        raise ValueError(
            f"answers have shapes {z.shape} and {edited.shape}: expected [B] twice, B at least 3"
        )
    _check_finite(np.stack([z, edited]), "answers before or after")
    rows = np.stack([z, np.ones_like(z)], axis=1)
    left = edited - rows @ np.linalg.lstsq(rows, edited, rcond=None)[0]
    change = ((edited - z) ** 2).mean()
    return float(1 - left @ left / (len(z) - 2) / change) if change else 1.0


def shift_scores(scores: Any, shift: float) -> np.ndarray:  # [B, 2]
    """Return scores of two labels with a constant added to the log-odds of class 1."""
    s = np.asarray(scores, np.float64)
    if s.ndim != 2 or s.shape[1] != 2 or not np.isfinite(shift):
        raise ValueError(
            f"scores of shape {s.shape}, shifted by {shift}: expected [B, 2] and a finite number"
        )
    return s + np.array([0.0, shift])


def accuracy_after_best_shift(scores: Any, labels: Any) -> float:
    """Return the accuracy after ``best_threshold_shift``, by two-fold cross-validation.

    The shift of one of two halves is evaluated on the other, and the other way round. Both halves
    have the classes in the same shares.
    """
    s, y = _check(scores, labels)
    first = np.zeros(len(y), bool)  # every other query of each class, in their order
    for c in np.unique(y):
        first[np.flatnonzero(y == c)[::2]] = True
    shifted = s.copy()
    for half in (first, ~first):
        shifted[half] = shift_scores(s[half], best_threshold_shift(s[~half], y[~half]))
    return accuracy(shifted, y)


def contextual_calibration(scores: Any, content_free: Any) -> np.ndarray:  # [B, C], [K, C]
    """Return log p(c | query) - log mean_k p(c | text k without content).

    (Zhao et al. 2102.09690.) It needs no labels. On texts without content the calibrated model
    favours no class.
    """
    free, s = (np.asarray(each, np.float64) for each in (content_free, scores))
    if free.ndim != 2 or s.shape[-1] != free.shape[-1] or not len(free):
        raise ValueError(
            f"scores of content-free texts have the shape {free.shape}; expected [K, C] with "
            f"C = {s.shape[-1]} and one text at least"
        )
    _check_finite(free, "scores of content-free texts")
    average = logsumexp(log_softmax(free, axis=1), axis=0, b=1 / len(free))
    return log_softmax(s, axis=-1) - average


def _pair_share(values: np.ndarray, of_class: np.ndarray) -> float:
    """Return P(value of the class > value of another) + P(equal) / 2, from the sum of ranks."""
    from scipy.stats import rankdata

    inside, outside = of_class.sum(), (~of_class).sum()
    return float((rankdata(values)[of_class].mean() - (inside + 1) / 2) / outside)


def _check_classes(labels: np.ndarray, classes: int) -> None:
    missing = sorted(set(range(classes)) - set(labels.tolist()))
    if missing:
        raise ValueError(
            f"labels [{len(labels)}] hold none of class {', '.join(map(str, missing))}: take "
            "queries of every class"
        )


def _check(scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    s, y = np.asarray(scores, np.float64), np.asarray(labels)
    if s.ndim != 2 or s.shape[1] < 2 or y.shape != s.shape[:1] or not len(y):
        raise ValueError(
            f"scores and labels have the shapes {s.shape} and {y.shape}; expected [B, C] and [B], "
            "with two labels or more and one query at least"
        )
    if not (np.issubdtype(y.dtype, np.integer) and 0 <= y.min() <= y.max() < s.shape[1]):
        raise ValueError(f"labels are {np.unique(y)}; expected whole numbers from 0 to C - 1")
    _check_finite(s, "scores")
    return s, y


def _check_finite(values: np.ndarray, name: str) -> None:
    if bad := int((~np.isfinite(values)).sum()):
        raise ValueError(f"{bad} {name} are NaN or infinite")
