"""A claim: what a source says, the criterion fixed before the run, what was measured, the verdict.

Intervals are taken over independent runs. Two methods are compared on the same prompts, by the
interval of their difference: ``mean_interval(errors_a - errors_b)``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np

from lsa_lab.statistics import CONFIDENCE, Interval, finite, mean_interval, median_interval

Verdict = Literal["holds", "fails", "undecided"]
Statistic = Literal["mean", "median", "ratio", "value", "estimate"]


@dataclass(frozen=True)
class Statement:
    """What a source says, what is measured for it, and the bounds, fixed before the run.

    ``statistic`` is taken over independent runs: the mean with Student's interval, the median with
    that of order statistics, or "ratio", the geometric mean of positive samples. A "value" is one
    number without a spread, an "estimate" a pair (number, standard error). ``margin`` m asks for
    equivalence: within [-m, m], for a ratio within [1 / (1 + m), 1 + m].
    """

    id: str  # short, unique in its experiment
    source: str  # "Zhang et al. 2306.09927, Theorem 4.1", or "derived here"
    says: str  # one sentence
    measured: str  # what a sample is, as a noun phrase
    statistic: Statistic = "mean"
    at_least: float | None = None
    at_most: float | None = None
    margin: float | None = None
    over: str = "runs"  # what a sample is one of
    overlap: float = 0.0  # of runs that split one table: rows for testing over rows for training
    standard_errors: float = 1.96  # half the width of the interval of an "estimate"
    note: str = ""  # a reading of the source, or a limit of the criterion
    revision: str = ""  # what was changed or added after a look at results
    redrawn: str = ""  # the fresh runs that judge it since that look: "12 fresh runs, 8 before"

    def __post_init__(self):
        if self.statistic not in get_args(Statistic):
            choices = ", ".join(get_args(Statistic))
            raise ValueError(f"statement {self.id}: statistic {self.statistic!r}: choose {choices}")
        if (self.margin is None) == (self.at_least is None and self.at_most is None):
            raise ValueError(f"statement {self.id}: give at_least, at_most or both, or a margin")
        low, high = self.bounds
        if not low <= high:
            raise ValueError(f"statement {self.id}: no number is >= {low:g} and <= {high:g}")

    @property
    def bounds(self) -> Interval:
        """[low, high], infinite where nothing is required."""
        if self.margin is not None:
            ratio = self.statistic == "ratio"
            return (1 / (1 + self.margin) if ratio else -self.margin), ratio + self.margin
        low = -math.inf if self.at_least is None else float(self.at_least)
        return low, math.inf if self.at_most is None else float(self.at_most)

    @property
    def criterion(self) -> str:
        """The criterion in words: "median over runs of the share of pairs >= 0.95"."""
        words = {"ratio": "geometric mean"}.get(self.statistic, self.statistic)
        what = self.measured
        if self.statistic not in ("value", "estimate"):
            what = f"{words} over {self.over} of {what}"
        signs = zip((">=", "<="), self.bounds, strict=True)
        kept = [f"{sign} {bound:.3g}" for sign, bound in signs if math.isfinite(bound)]
        note = f" ({self.note})" if self.note else ""
        return f"{what} {' and '.join(kept)}{note}"


@dataclass(frozen=True)
class Claim:
    """One row of the table of claims."""

    id: str  # short and unique, for example "one_layer_optimum.risk"
    source: str  # "Zhang et al. 2306.09927, Theorem 4.1", or "derived here"
    statement: str  # what is claimed, as one sentence
    criterion: str  # what was to be measured, and the bound it was to keep
    value: float
    interval: Interval  # 95 %
    verdict: Verdict
    revision: str = ""  # what was changed or added after a look at results
    redrawn: str = ""  # the fresh runs that judge it since a look
    thin: bool = False  # decided, by less than a tenth of the interval's width
    runs_factor: float = math.nan  # where undecided: about how many times the runs would decide

    def __post_init__(self):
        if self.verdict not in get_args(Verdict):
            choices = ", ".join(get_args(Verdict))
            raise ValueError(f"claim {self.id}: verdict {self.verdict!r}: choose one of {choices}")
        low, high = _checked(self.interval)
        object.__setattr__(self, "interval", (low, high))
        object.__setattr__(self, "value", float(self.value))
        if math.isnan(self.value):
            raise ValueError(f"claim {self.id}: its value is NaN: claim nothing about it")


def judge(
    statements: Sequence[Statement], samples: Mapping[str, Any], confidence: float = CONFIDENCE
) -> list[Claim]:
    """A claim for each statement, in their order, from its samples [R] (a number
    for "value", a pair for "estimate"); none from None, where there is nothing to judge.

    ``confidence`` is that of one interval: 1 - 0.05 / m gives m verdicts the family-wise level.

    Raises ValueError if an id is there twice, lacks samples, has samples and no statement, or if
    its samples are not finite.
    """
    ids = [statement.id for statement in statements]
    if len(set(ids)) < len(ids):
        raise ValueError(f"two statements have the same id, among {', '.join(ids)}")
    lacking = [id for id in ids if id not in samples]
    strays = [id for id in samples if id not in ids]
    if lacking or strays:
        raise ValueError(f"no samples of {lacking}; samples without a statement: {strays}")
    rows = [(statement, samples[statement.id]) for statement in statements]
    return [_judged(*row, confidence) for row in rows if row[1] is not None]


def _judged(statement: Statement, samples: Any, confidence: float) -> Claim:
    try:
        value, interval = _measured(statement, samples, confidence)
    except ValueError as error:
        raise ValueError(f"{statement.id}: {error}") from None
    verdict = verdict_of(interval, *statement.bounds)
    row = (statement.id, statement.source, statement.says, statement.criterion)
    scale = _scale(statement, interval)
    ends, bounds = ((scale(low), scale(high)) for low, high in (interval, statement.bounds))
    decided = verdict != "undecided"
    return Claim(
        *row,
        value,
        interval,
        verdict,
        statement.revision,
        statement.redrawn,
        thin=decided and _thin(ends, bounds),
        runs_factor=math.nan if decided else _runs_factor(scale(value), ends, bounds),
    )


def _measured(statement: Statement, samples: Any, confidence: float) -> tuple[float, Interval]:
    if statement.statistic == "value":
        if np.ndim(samples) or not np.isfinite(samples):
            raise ValueError(f"{samples}: expected one finite number, without a spread")
        return float(samples), (float(samples), float(samples))
    if statement.statistic == "median":
        return float(np.median(samples)), median_interval(samples, confidence)
    if statement.statistic == "ratio":
        logs = np.log(finite(samples))
        low, high = mean_interval(logs, confidence, statement.overlap)
        return math.exp(logs.mean()), (math.exp(low), math.exp(high) if high < 700 else math.inf)
    x = finite(samples)
    if statement.statistic == "estimate":
        errors = max(statement.standard_errors, NormalDist().inv_cdf((1 + confidence) / 2))
        value, half = float(x[0]), errors * float(x[1])
        return value, (value - half, value + half)
    return float(np.asarray(samples).mean()), mean_interval(x, confidence, statement.overlap)


def _scale(statement: Statement, interval: Interval) -> Callable[[float], float]:
    """The scale on which widths are compared: logarithms of ratios, and of positive medians, whose
    intervals of order statistics are the same on every scale."""
    positive = min(interval[0], *filter(math.isfinite, statement.bounds)) > 0
    logarithmic = statement.statistic == "ratio" or (statement.statistic == "median" and positive)
    return _log if logarithmic else float


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def _thin(interval: Interval, bounds: Interval) -> bool:
    """Whether an end of the interval is nearer to a bound than a tenth of the interval's width."""
    width = interval[1] - interval[0]
    gap = min(abs(end - bound) for end in interval for bound in bounds)
    return math.isfinite(width) and gap < width / 10


def _runs_factor(value: float, interval: Interval, bounds: Interval) -> float:
    """Intervals shrink as 1/√R: (how far one reaches / how far a bound that it crosses is)²."""
    low, high = interval
    factors = [
        ((value - low if bound < value else high - value) / abs(value - bound)) ** 2
        for bound in bounds
        if low < bound < high and bound != value
    ]
    return math.inf if value in bounds else max(factors)


def verdict_of(
    interval: Interval, at_least: float | None = None, at_most: float | None = None
) -> Verdict:
    """Holds if the whole interval keeps the bounds, fails if none of it does, else undecided."""
    low, high = _checked(interval)
    floor = -math.inf if at_least is None else float(at_least)
    ceiling = math.inf if at_most is None else float(at_most)
    if at_least is None and at_most is None:
        raise ValueError("a verdict needs a criterion: give at_least, at_most or both")
    if not floor <= ceiling:
        raise ValueError(f"no number is at least {at_least} and at most {at_most}")
    if floor <= low and high <= ceiling:
        return "holds"
    return "fails" if high < floor or ceiling < low else "undecided"


def _checked(interval: Interval) -> Interval:
    low, high = (float(end) for end in interval)
    if not low <= high:
        raise ValueError(f"interval ({low}, {high}): expected two numbers, the lower one first")
    return low, high
