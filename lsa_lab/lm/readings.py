"""What scores of labels say: how right they are, and how right but for a constant bias.

Scores [B, C] are logits or log-probabilities of the C labels after B queries, labels [B] the right
ones. Readings compare labels with each other alone, p(c | query) = softmax_c(scores), in float64.
"""

from typing import Any

import numpy as np


def accuracy(scores: Any, labels: Any) -> float:
    """The share of queries whose right label scores most; m labels that score the same share it."""
    s, y = _checked(scores, labels)
    best = s == s.max(1, keepdims=True)
    return float((best[np.arange(len(y)), y] / best.sum(1)).mean())


def cross_entropy(scores: Any, labels: Any) -> float:
    """The mean of -log p(right label | query), among the labels, in nats."""
    s, y = _checked(scores, labels)
    return float(-log_probabilities(s)[np.arange(len(y)), y].mean())


def auc(scores: Any, labels: Any) -> float:
    """How often a query of a class has larger log-odds of it than one of another; ties count half.

    For two classes it is P(z > z') + P(z = z') / 2, z = s_1 - s_0 of a query of class 1 and z' that
    of one of class 0: no constant added to a class changes it. For more it is the mean over classes
    of one against the rest, by log p / (1 - p), which a constant does change.
    """
    s, y = _checked(scores, labels)
    classes = range(s.shape[1])
    _check_classes(y, len(classes))
    if len(classes) == 2:
        return _above(s[:, 1] - s[:, 0], y == 1)
    rest = [np.logaddexp.reduce(np.delete(s, c, axis=1), axis=1) for c in classes]
    return float(np.mean([_above(s[:, c] - rest[c], y == c) for c in classes]))


def log_probabilities(scores: Any) -> np.ndarray:  # [B, C]
    """The log p(c | query) among the labels."""
    s = np.asarray(scores, np.float64)
    return s - np.logaddexp.reduce(s, axis=-1, keepdims=True)


def best_shift(scores: Any, labels: Any) -> float:
    """The constant b added to the log-odds z of class 1 that makes the cross-entropy least.

    It is the root of mean σ(z + b) = the share of class 1, as the derivative says: the one
    constant under which the two labels are given as often as they are right.
    """
    z, y = _log_odds(scores, labels)
    share = y.mean()
    level = np.log(share / (1 - share))
    low, high = level - z.max(), level - z.min()  # at the first no σ(z + b) is above the share
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        below = _sigmoid(z + middle).mean() < share
        low, high = (middle, high) if below else (low, middle)
    return float((low + high) / 2)


def best_threshold_shift(scores: Any, labels: Any) -> float:
    """The constant b added to the log-odds of class 1 under which most labels are right.

    It lies halfway between two queries; of several the one of least |b|.
    """
    z, y = _log_odds(scores, labels)
    levels = np.unique(z)
    shifts = -np.concatenate(
        [levels[:1] - 1, (levels[1:] + levels[:-1]) / 2, levels[-1:] + 1, [0.0]]
    )
    right = [np.mean(np.where(z + b == 0, 0.5, (z + b > 0) == y)) for b in shifts]
    best = shifts[np.isclose(right, max(right), rtol=0, atol=1e-12)]
    return float(best[np.argmin(np.abs(best))])


def best_affine(scores: Any, labels: Any, shift: bool = True) -> tuple[float, float]:
    """The slope a and the shift b of a z + b, z the log-odds of class 1, by logistic regression;
    without ``shift`` b = 0 and 1 / a is one temperature, of Guo et al. 1706.04599.

    The targets are Platt's (1999), (N_1 + 1) / (N_1 + 2) and 1 / (N_0 + 2), so that a is finite
    where a threshold separates the classes. A temperature is positive: a is at least 1e-3 then.
    """
    z, y = _log_odds(scores, labels)
    ones, size = int(y.sum()), max(float(np.abs(z).max()), 1e-300)
    targets = np.where(y == 1, (ones + 1) / (ones + 2), 1 / (len(y) - ones + 2))
    rows = np.stack([z / size, np.ones_like(z)], axis=1)[:, : 1 + shift]

    def loss(weights: np.ndarray) -> float:
        return float((np.logaddexp(0, rows @ weights) - targets * (rows @ weights)).mean())

    weights = np.zeros(rows.shape[1])
    for _ in range(100):
        p = _sigmoid(rows @ weights)
        slope = rows.T @ (p - targets) / len(z)
        curvature = (rows * (p * (1 - p))[:, None]).T @ rows / len(z)
        step = np.linalg.lstsq(curvature, slope, rcond=None)[0]
        share = 1.0
        while share > 1e-9 and loss(weights - share * step) > loss(weights):
            share /= 2
        weights = weights - share * step
        if np.abs(share * step).max() <= 1e-12 * (1 + np.abs(weights).max()):
            break
    a = float(weights[0]) / size
    return (a, float(weights[1])) if shift else (max(a, 1e-3), 0.0)


def affine(scores: Any, a: float, b: float) -> np.ndarray:  # [B, 2]
    """Scores of two labels whose log-odds z are a z + b."""
    s = _of_two(scores, a, b)
    return np.stack([np.zeros(len(s)), a * (s[:, 1] - s[:, 0]) + b], axis=1)


def affine_shares(before: Any, after: Any) -> tuple[float, float]:
    """How far answers after an edit are an affine map a z + b of those before it, [B] each.

    The R² of the best such map, 1 - |z' - a z - b|² / |z' - mean z'|², and the share of the change
    that it accounts for, 1 - |z' - a z - b|² / |z' - z|², a constant shift among it: an edit of any
    kind has R² near 1 if it is small, and a share that does not depend on its size. Both take the
    mean squares with B - 2, B - 1 and B degrees of freedom.
    """
    z, own = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if z.ndim != 1 or z.shape != own.shape or len(z) < 3:
        raise ValueError(
            f"answers have the shapes {z.shape} and {own.shape}: expected [B] twice, B at least 3"
        )
    if not np.isfinite([z, own]).all():
        raise ValueError("answers before or after hold NaN or infinite entries: leave them out")
    rows = np.stack([z, np.ones_like(z)], axis=1)
    left = own - rows @ np.linalg.lstsq(rows, own, rcond=None)[0]
    missed = left @ left / (len(z) - 2)
    whole = own.var(ddof=1), ((own - z) ** 2).mean()
    r2, share = (1.0 if total == 0 else 1 - missed / total for total in whole)
    return float(r2), float(share)


def shifted(scores: Any, shift: float) -> np.ndarray:  # [B, 2]
    """Scores of two labels with a constant added to the log-odds of class 1."""
    s = _of_two(scores, shift)
    return np.stack([s[:, 0], s[:, 1] + shift], axis=1)


def _of_two(scores: Any, *numbers: float) -> np.ndarray:  # [B, 2]
    s = np.asarray(scores, np.float64)
    if s.ndim != 2 or s.shape[1] != 2 or not np.isfinite(numbers).all():
        raise ValueError(
            f"scores of shape {s.shape}, moved by {numbers}: expected [B, 2] and finite numbers"
        )
    return s


def cross_entropy_after_best_shift(scores: Any, labels: Any) -> float:
    """The cross-entropy that a constant bias does not account for.

    ``best_shift`` of one of two ``halves`` is judged on the other and the other way round: no query
    is judged by a shift that it helped to fit. Both halves have the classes in the same shares.
    """
    return _across(best_shift, cross_entropy, scores, labels)


def accuracy_after_best_shift(scores: Any, labels: Any) -> float:
    """The same for the accuracy under ``best_threshold_shift``: the threshold moved as a rival."""
    return _across(best_threshold_shift, accuracy, scores, labels)


def halves(labels: Any) -> np.ndarray:  # [B], bool
    """Every other query of each class, in their order."""
    y = np.asarray(labels)
    first = np.zeros(len(y), bool)
    for c in np.unique(y):
        first[np.flatnonzero(y == c)[::2]] = True
    return first


def contextual_calibration(scores: Any, content_free: Any) -> np.ndarray:  # [B, C], [K, C]
    """log p(c | query) - log mean_k p(c | text k that says nothing), of Zhao et al. 2102.09690.

    It needs no label: on texts that say nothing the calibrated model favours no class.
    """
    free, s = np.asarray(content_free, np.float64), log_probabilities(scores)
    if free.ndim != 2 or s.shape[-1] != free.shape[-1] or not len(free):
        raise ValueError(
            f"scores of content-free texts have the shape {free.shape}; expected [K, C] with "
            f"C = {s.shape[-1]} and one text at least"
        )
    if not np.isfinite(free).all():
        raise ValueError("scores of content-free texts are NaN or infinite")
    free = log_probabilities(free)
    return s - (np.logaddexp.reduce(free, axis=0) - np.log(len(free)))


def _across(fit: Any, reading: Any, scores: Any, labels: Any) -> float:
    s, y = _checked(scores, labels)
    first = halves(y)
    values, counts = [], []
    for fitted, judged in ((first, ~first), (~first, first)):
        values.append(reading(shifted(s[judged], fit(s[fitted], y[fitted])), y[judged]))
        counts.append(judged.sum())
    return float(np.average(values, weights=counts))


def _above(values: np.ndarray, of_class: np.ndarray) -> float:
    """P(value of the class > value of another) + P(equal) / 2, over all pairs."""
    inside, outside = values[of_class], np.sort(values[~of_class])
    below = np.searchsorted(outside, inside, "left") + np.searchsorted(outside, inside, "right")
    return float(below.mean() / (2 * len(outside)))


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -z))


def _log_odds(scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:  # [B] x 2
    s, y = _checked(scores, labels)
    if s.shape[1] != 2:
        raise ValueError(f"scores of {s.shape[1]} labels: a shift of the log-odds needs two")
    _check_classes(y, 2)
    return s[:, 1] - s[:, 0], y


def _check_classes(labels: np.ndarray, classes: int) -> None:
    missing = sorted(set(range(classes)) - set(labels.tolist()))
    if missing:
        raise ValueError(
            f"labels [{len(labels)}] hold none of class {', '.join(map(str, missing))}: take "
            "queries of every class"
        )


def _checked(scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    s, y = np.asarray(scores, np.float64), np.asarray(labels)
    if s.ndim != 2 or s.shape[1] < 2 or y.shape != s.shape[:1] or not len(y):
        raise ValueError(
            f"scores and labels have the shapes {s.shape} and {y.shape}; expected [B, C] and [B], "
            "with two labels or more and one query at least"
        )
    if not (np.issubdtype(y.dtype, np.integer) and 0 <= y.min() <= y.max() < s.shape[1]):
        raise ValueError(f"labels are {np.unique(y)}; expected whole numbers from 0 to C - 1")
    if not np.isfinite(s).all():
        raise ValueError(f"{int((~np.isfinite(s)).sum())} scores are NaN or infinite")
    return s, y
