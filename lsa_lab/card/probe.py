"""One number of a card: its statement, samples, median, interval, bound and verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import bdtr

Interval = tuple[float, float]


def max_misses(num_samples: int, level: float) -> int:
    """Return the largest m with P(Binomial(R, 1/2) <= m) <= level, -1 if there is none."""
    return int((bdtr(np.arange(num_samples + 1), num_samples, 0.5) <= level).sum()) - 1


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
    answers: np.ndarray | float = 0.0,  # the predictions that the samples were computed from
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    null: np.ndarray | Sequence[float] | float | None = None,  # its median counts
    note: str = "",
    **fields: Any,
) -> Probe:
    """Return a Probe of the median over the runs, and count the runs that keep the bound.

    A sample that is NaN is undefined, and the probe has no verdict. An infinite sample is one of a
    run with predictions that are not finite, and keeps no upper bound.
    """
    samples, finite = np.asarray(samples, float), np.isfinite(answers)
    defined, notes, kept, verdict = samples[~np.isnan(samples)], [note] if note else [], None, ""
    if not finite.all():
        notes.append(f"diverged in {int((~finite).sum())} of {finite.size} prompts")
    if len(defined) < len(samples):
        notes.append(f"undefined in {len(samples) - len(defined)} of {len(samples)} runs")
    if at_least is not None or at_most is not None:
        floor = -math.inf if at_least is None else at_least
        ceiling = math.inf if at_most is None else at_most
        kept = int(((floor <= defined) & (defined <= ceiling)).sum())
        verdict = decide(kept, len(samples)) if len(defined) == len(samples) else ""
    value = float(np.median(defined)) if len(defined) else math.nan
    null = None if null is None else float(np.median(null))
    return Probe(
        name, group, says, value, tuple(samples.tolist()), median_interval(defined), at_least,
        at_most, kept, verdict, null, note="; ".join(notes), **fields,
    )  # fmt: skip
