"""Statistics of independent runs: intervals, ranks, and the place where runs are worst."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Interval = tuple[float, float]

CONFIDENCE = 0.95
UNKNOWN: Interval = (-math.inf, math.inf)  # too few runs to know a spread


def confidence_or(confidence: float | None) -> float:
    """The confidence of an interval: the one that is asked for, or ``CONFIDENCE``."""
    if confidence is None:
        return CONFIDENCE
    if not (isinstance(confidence, float | np.floating) and 0 < confidence < 1):
        raise ValueError(f"confidence = {confidence!r}: it lies between 0 and 1; for 95 % give .95")
    return float(confidence)


def level(confidence: float | None = None) -> str:
    """A confidence in words, as pages and captions have it: "90 %"."""
    return f"{100 * confidence_or(confidence):.10g} %"


def mean_interval(samples: Any, confidence: float | None = None, overlap: float = 0.0) -> Interval:
    """Student's interval for the mean of R runs: x̄ ± t_{R-1}((1 + confidence) / 2) s √(1/R + o).

    The overlap o is 0 for independent runs; for runs that split one table at random it is the
    number of rows for testing over that for training (Nadeau and Bengio 2003).
    """
    x, confidence = finite(samples), confidence_or(confidence)
    if x.ndim != 1:
        raise ValueError(f"samples of shape {x.shape}: expected one number for each run, [R]")
    if not 0 <= overlap < math.inf:
        raise ValueError(f"overlap = {overlap}: a ratio of numbers of rows is not negative")
    if len(x) < 2:
        return UNKNOWN
    from scipy.special import stdtrit

    mean = float(x.mean())
    half = float(
        stdtrit(len(x) - 1, (1 + confidence) / 2)
        * x.std(ddof=1)
        / math.sqrt(len(x) / (1 + overlap * len(x)))
    )
    return mean - half, mean + half


def median_interval(samples: Any, confidence: float | None = None) -> Interval:
    """An interval for the median of R runs, whatever their distribution: [x_(k), x_(R+1-k)].

    k is the largest rank with 2 P(Binomial(R, 1/2) < k) <= 1 - confidence; for .95 and fewer than
    six runs there is none.
    """
    x = np.sort(finite(samples))
    if x.ndim != 1:
        raise ValueError(f"samples of shape {x.shape}: expected one number for each run, [R]")
    tails = np.cumsum([math.comb(len(x), k) / 2 ** len(x) for k in range(len(x) + 1)])
    rank = int(np.sum(2 * tails <= 1 - confidence_or(confidence)))
    return UNKNOWN if rank == 0 else (float(x[rank - 1]), float(x[-rank]))


def worst(samples: Any, badness: Callable = np.median) -> np.ndarray:  # [R, ...] -> [R]
    """The runs at the place where ``badness`` of them is largest, the first of equals.

    For the smallest pass ``lambda runs: -np.median(runs)``. Raises if a badness is NaN.
    """
    x = np.asarray(samples)
    columns = list(x.reshape(len(x), -1).T)
    values = np.array([float(badness(column)) for column in columns])
    if np.isnan(values).any():
        raise ValueError("badness is NaN at some place: say what counts there")
    return columns[int(np.argmax(values))]


def worst_elsewhere(samples: Any, badness: Callable = np.median) -> np.ndarray:  # -> [R]
    """Each run of ``samples`` [R, ...] at the place that is worst for the other runs.

    Chosen without the run that is judged, the place does not help a statement to fail.
    """
    x = np.asarray(samples).reshape(len(samples), -1)
    others = (np.delete(x, run, axis=0) for run in range(len(x)))
    places = [np.argmax([float(badness(column)) for column in rest.T]) for rest in others]
    return x[np.arange(len(x)), places]


def best_elsewhere(samples: Any) -> np.ndarray:  # [R, ..., C] -> [R, ...]
    """Each run at the choice whose mean over the other runs is largest: made without the run.

    For the smallest pass ``-samples``, and turn the sign of the result. Raises if a mean is NaN.
    """
    x = np.asarray(samples, float)
    if len(x) < 2:
        raise ValueError(f"samples of shape {x.shape}: expected two runs or more, [R, ..., C]")
    elsewhere = np.stack([np.delete(x, r, axis=0).mean(0) for r in range(len(x))])
    if np.isnan(elsewhere).any():
        raise ValueError("the mean of the other runs is NaN at some choice: say what counts there")
    return np.take_along_axis(x, elsewhere.argmax(-1)[..., None], -1)[..., 0]


def jackknife(statistic: Callable, runs: np.ndarray) -> np.ndarray:  # [R, ...] -> [R]
    """Pseudo-values R θ(mean of all) - (R - 1) θ(mean of the others), one for each run.

    Their mean is the jackknife's estimate of θ, their spread tells its error (Tukey 1958).
    """
    count, total = len(runs), runs.sum(0)
    others = [statistic((total - run) / (count - 1)) for run in runs]
    return count * statistic(total / count) - (count - 1) * np.array(others)


def spearman(left: Any, right: Any) -> float:
    """Return Spearman's rank correlation of two rows of numbers, 0 where either does not change."""
    left, right = _centred_ranks(left), _centred_ranks(right)
    scale = np.sqrt((left @ left) * (right @ right))
    return float(left @ right / scale) if scale != 0 else 0.0


def _centred_ranks(row: Any) -> np.ndarray:  # [N], NaN where any number is none
    """Return ranks less their mean; equal numbers share the mean of theirs."""
    from scipy.stats import rankdata

    ranks = rankdata(np.asarray(row, float))
    return ranks - ranks.mean()


def finite(samples: Any) -> np.ndarray:  # [R, ...]
    """Samples as numbers; raises if there are none, or if one is NaN or infinite."""
    x = np.asarray(samples, float)
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(f"samples of shape {x.shape}: expected at least one run, [R, ...]")
    bad = int(np.sum(~np.isfinite(x)))
    if bad:
        raise ValueError(
            f"{bad} of {x.size} samples are NaN or infinite: count the runs that diverged, and say "
            f"so in the claim, before taking an interval over the others"
        )
    return x
