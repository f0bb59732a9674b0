"""One number of a card: its statement, value, interval, bound and verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Interval = tuple[float, float]


def mean_interval(samples: np.ndarray) -> Interval:  # [R]
    """Return Student's interval for the mean of R runs, everything if there is one run."""
    if len(samples) < 2:
        return -math.inf, math.inf
    from scipy.special import stdtrit

    half = float(stdtrit(len(samples) - 1, 0.975)) * samples.std(ddof=1) / len(samples) ** 0.5
    return float(samples.mean() - half), float(samples.mean() + half)


def compare(interval: Interval, at_least: float | None, at_most: float | None) -> str:
    """Return holds if the whole interval is in the bounds, fails if none of it is."""
    low, high = interval
    floor = -math.inf if at_least is None else at_least
    ceiling = math.inf if at_most is None else at_most
    if floor <= low and high <= ceiling:
        return "holds"
    return "fails" if high < floor or ceiling < low else "undecided"


@dataclass(frozen=True)
class Probe:
    """A number with its interval over the runs, and the value expected without the effect."""

    name: str  # unique on a card: "risk over Bayes, n = 16"
    group: str  # a group of docs/card.md
    says: str  # the statement with the bound, or a question if there is no bound
    value: float | str
    interval: Interval | None  # None if the value is a name, or if only one run was measured
    bound: str = ""  # "at most 1.1"; empty without a bound
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
    ratio: bool = False,
    at_least: float | None = None,
    at_most: float | None = None,
    **fields: Any,
) -> Probe:
    """Return a Probe of the mean over the runs, or of the geometric mean of a ``ratio``.

    If the value of a run is not finite, a ratio becomes infinite and any other number NaN, and a
    probe with a bound fails.
    """
    samples = np.asarray(samples, float)
    limits = ("at least", at_least), ("at most", at_most)
    bound = " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
    if not np.isfinite(samples).all():
        num_lost = int((~np.isfinite(samples)).sum())
        warning = f"{num_lost} of {len(samples)} values are not finite"
        fields |= {"note": "; ".join(filter(None, (fields.get("note"), warning)))}
        value = math.inf if ratio else math.nan
        verdict = "fails" if bound else ""
        return Probe(name, group, says, value, (value, value), bound, verdict, **fields)
    scaled = np.log(np.maximum(samples, 1e-12)) if ratio else samples
    value, interval = float(scaled.mean()), mean_interval(scaled)
    if ratio:
        low, high = (math.exp(min(end, 700)) for end in interval)
        value, interval = math.exp(value), (low, high)
    verdict = compare(interval, at_least, at_most) if bound else ""
    return Probe(name, group, says, value, interval, bound, verdict, **fields)
