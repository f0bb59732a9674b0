"""One number of a card: what is asked, what was measured, and how it is judged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lsa_lab.judging.claims import verdict_of
from lsa_lab.judging.statistics import Interval, mean_interval


@dataclass(frozen=True)
class Probe:
    """A number with its interval over the runs, and what it is beside."""

    name: str  # unique on a card: "risk over Bayes, n = 16"
    group: str  # the question that it belongs to, a name of docs/card.md
    says: str  # the statement that is judged; a question where nothing is
    value: float | str
    interval: Interval | None  # None where the value is a name, or one run was measured
    bound: str = ""  # "at most 1.1"; empty where nothing is judged
    verdict: str = ""  # holds, fails, undecided; empty where nothing is judged
    null: float | None = None  # the number without the effect
    null_is: str = ""  # what the null is of
    note: str = ""
    facts: dict[str, Any] = field(default_factory=dict)  # more of it, as JSON


def judged(
    name: str,
    group: str,
    says: str,
    samples: Sequence[float] | np.ndarray,  # [R]
    *,
    ratio: bool = False,
    at_least: float | None = None,
    at_most: float | None = None,
    **more: Any,
) -> Probe:
    """A Probe of the mean over the runs, or of the geometric mean of a ``ratio``, judged by a
    bound. Where a run has no finite value a ratio is infinite, and another number is none."""
    samples = np.asarray(samples, float)
    pairs = ("at least", at_least), ("at most", at_most)
    bound = " and ".join(f"{word} {limit:g}" for word, limit in pairs if limit is not None)
    if not np.isfinite(samples).all():
        lost = int((~np.isfinite(samples)).sum())
        words = f"{lost} of {len(samples)} values are not finite"
        note = "; ".join(filter(None, (more.get("note"), words)))
        verdict = "fails" if bound else ""
        more = more | {"note": note}
        none = math.inf if ratio else math.nan
        return Probe(name, group, says, none, (none, none), bound, verdict, **more)
    logs = np.log(np.maximum(samples, 1e-12)) if ratio else samples
    value, ends = float(logs.mean()), mean_interval(logs)
    if ratio:
        low, high = (math.exp(min(end, 700)) for end in ends)
        value, ends = math.exp(value), (low, high)
    verdict = verdict_of(ends, at_least, at_most) if bound else ""
    return Probe(name, group, says, value, ends, bound, verdict, **more)
