"""One number of a card: its statement, samples, median, interval, bound and verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Interval = tuple[float, float]


def max_misses(num_samples: int, level: float) -> int:
    """Return the largest m with P(Binomial(R, 1/2) <= m) <= level, -1 if there is none."""
    counts = [math.comb(num_samples, k) for k in range(num_samples + 1)]
    return int((np.cumsum(counts) <= level * 2**num_samples).sum()) - 1


def mean_interval(samples: np.ndarray) -> Interval:  # [R]
    """Return Student's interval for the mean of R runs, everything if there is one run."""
    if len(samples) < 2:
        return -math.inf, math.inf
    from scipy.special import stdtrit

    half = float(stdtrit(len(samples) - 1, 0.975)) * samples.std(ddof=1) / len(samples) ** 0.5
    return float(samples.mean() - half), float(samples.mean() + half)


def median_interval(samples: np.ndarray | Sequence[float]) -> Interval | None:
    """Return the 95 % interval [x_(m+1), x_(R-m)] of the median, None below six samples."""
    ordered, misses = np.sort(samples), max_misses(len(samples), 0.025)
    return None if misses < 0 else (float(ordered[misses]), float(ordered[-1 - misses]))


def decide(num_kept: int, num_samples: int) -> str:
    """Return holds if all samples keep a bound, fails if none does, with one exception from eight.

    By the sign test of level .05, one of eight samples may differ, two of eleven, and so on.
    """
    allowed = max(max_misses(num_samples, 0.05), 0)
    if num_kept >= num_samples - allowed:
        return "holds"
    return "fails" if num_kept <= allowed else "undecided"


@dataclass(frozen=True)
class Probe:
    """A number of each run, and the value expected without the effect."""

    name: str  # unique on a card: "risk over Bayes, n = 16"
    group: str  # a heading of docs/card.md
    says: str  # the statement with the bound, or a question if there is no bound
    value: float | str  # the median of the samples, or a name
    samples: Sequence[float] = ()  # [R], NaN where undefined
    interval: Interval | None = None  # of the median
    at_least: float | None = None
    at_most: float | None = None
    kept: int | None = None  # number of samples that keep the bound
    verdict: str = ""  # holds, fails, undecided; empty without a bound
    null: float | None = None  # the number without the effect
    null_is: str = ""  # the predictor or case that has the null
    note: str = ""
    facts: dict[str, Any] = field(default_factory=dict)  # details, as JSON


def make_probe(
    name: str,
    group: str,
    says: str,
    samples: Sequence[float] | np.ndarray,  # [R]
    *,
    answers: np.ndarray | None = None,  # the predictions that the samples were computed from
    at_least: float | None = None,
    at_most: float | None = None,
    note: str = "",
    **fields: Any,
) -> Probe:
    """Return a Probe of the median over the runs, and count the runs that keep the bound.

    A sample that is NaN is undefined, and the probe has no verdict. An infinite sample is one of a
    run with predictions that are not finite, and keeps no upper bound.
    """
    samples = np.asarray(samples, float)
    defined, notes = samples[~np.isnan(samples)], [note] if note else []
    if answers is not None and not np.isfinite(answers).all():
        notes.append(f"diverged in {int((~np.isfinite(answers)).sum())} of {answers.size} prompts")
    if len(defined) < len(samples):
        notes.append(f"undefined in {len(samples) - len(defined)} of {len(samples)} runs")
    kept, verdict = None, ""
    if at_least is not None or at_most is not None:
        floor = -math.inf if at_least is None else at_least
        ceiling = math.inf if at_most is None else at_most
        kept = int(((floor <= defined) & (defined <= ceiling)).sum())
        verdict = decide(kept, len(samples)) if len(defined) == len(samples) else ""
    value = float(np.median(defined)) if len(defined) else math.nan
    return Probe(
        name, group, says, value, tuple(samples.tolist()), median_interval(defined), at_least,
        at_most, kept, verdict, note="; ".join(notes), **fields,
    )  # fmt: skip
