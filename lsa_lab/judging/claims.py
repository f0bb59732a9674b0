"""A claim: what a source says, the criterion fixed before the run, what was measured, the verdict.

Intervals are taken over independent runs. Two methods are compared on the same prompts, by the
interval of their difference: ``mean_interval(errors_a - errors_b)``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np

from lsa_lab.judging.statements import METHODS, Statement, cells_of, samples_of
from lsa_lab.judging.statistics import (
    CONFIDENCE,
    Interval,
    confidence_or,
    finite,
    mean_interval,
    median_interval,
)
from lsa_lab.store import results

Verdict = Literal["holds", "fails", "undecided", "estimated"]


@dataclass(frozen=True)
class Claim:
    """One row of the table of claims."""

    id: str  # short and unique, for example "one_layer_optimum.risk"
    source: str  # "Zhang et al. 2306.09927, Theorem 4.1", or "derived here"
    statement: str  # what is claimed, as one sentence
    criterion: str  # what was to be measured, and the bound it was to keep
    value: float
    interval: Interval
    verdict: Verdict
    revision: str = ""  # what was changed or added after a look at results
    redrawn: str = ""  # the fresh runs that judge it since a look
    thin: bool = False  # decided, by less than a tenth of the interval's width
    runs_factor: float = math.nan  # where undecided: about how many times the runs would decide
    confidence: float = CONFIDENCE  # of the interval
    method: str = ""  # how the interval was taken
    family: Statement | None = None  # the sentence and the criterion for all cells of its family
    case: Mapping[str, Any] = field(default_factory=dict)  # its place on the axes of the family
    note: str = ""  # a reading of the source, or a limit of the criterion, which says it too

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
    statements: Sequence[Statement], samples: Mapping[str, Any], confidence: float | None = None
) -> list[Claim]:
    """A claim for each statement and each cell of a family, in their order, from its samples [R] (a
    number for "value", a pair for "estimate"); none from None, where there is nothing to judge.

    ``confidence`` is that of one interval: 1 - 0.05 / m gives m verdicts the family-wise level.

    Raises ValueError if an id is there twice, lacks samples, has samples and no statement, or if
    its samples are not finite.
    """
    cells = cells_of(statements)
    families = {each.id: each.whole for each in statements if each.cells}
    ids = [cell.id for cell in cells]
    if len(set(ids)) < len(ids):
        raise ValueError(f"two statements have the same id, among {', '.join(ids)}")
    names = [each.id for each in statements if each.cells]
    if len(families) < len(names):
        raise ValueError(f"two families have the same id, among {', '.join(names)}")
    lacking = [id for id in ids if id not in samples]
    strays = [id for id in samples if id not in ids]
    if lacking or strays:
        raise ValueError(f"no samples of {lacking}; samples without a statement: {strays}")
    rows = [(cell, samples[cell.id]) for cell in cells]
    confidence = confidence_or(confidence)
    return [
        _judged(cell, sample, confidence, families.get(cell.family))
        for cell, sample in rows
        if sample is not None
    ]


def evidence(door: Any, dataset: Any) -> tuple[tuple[Statement, ...], dict[str, Any]]:
    """The statements of a claims door at the configuration that was run, and {id: samples}.

    The door has ``statements(config)`` and, where samples share work, ``numbers(dataset)``: what
    ``sample`` takes them from; else that is the Dataset.
    """
    statements = tuple(door.statements(results.config_of(dataset)))
    result = door.numbers(dataset) if hasattr(door, "numbers") else dataset
    return statements, samples_of(statements, result)


def _judged(
    statement: Statement, samples: Any, confidence: float, family: Statement | None
) -> Claim:
    try:
        value, interval = _measured(statement, samples, confidence)
    except ValueError as error:
        raise ValueError(f"{statement.id}: {error}") from None
    verdict: Verdict = "estimated"
    if not statement.unjudged:
        verdict = verdict_of(interval, *statement.bounds)
    scale = _scale(statement, interval)
    ends, bounds = ((scale(low), scale(high)) for low, high in (interval, statement.bounds))
    return Claim(
        statement.id,
        statement.source,
        statement.says,
        statement.criterion,
        value,
        interval,
        verdict,
        statement.revision,
        statement.redrawn,
        thin=verdict in ("holds", "fails") and _thin(ends, bounds),
        runs_factor=_runs_factor(scale(value), ends, bounds)
        if verdict == "undecided"
        else math.nan,
        confidence=confidence,
        method=METHODS[statement.statistic],
        family=family,
        case=statement.case,
        note=statement.note,
    )


def _measured(statement: Statement, samples: Any, confidence: float) -> tuple[float, Interval]:
    if statement.statistic == "value":
        if np.ndim(samples) or not np.isfinite(samples):
            raise ValueError(f"{samples}: expected one finite number, without a spread")
        return float(samples), (float(samples), float(samples))
    if statement.statistic == "median":
        return float(np.median(samples)), median_interval(samples, confidence)
    if statement.statistic == "ratio":
        x = finite(samples)
        if (x <= 0).any():
            raise ValueError(f"{(x <= 0).sum()} of {x.size} samples are not positive: no ratio")
        logs = np.log(x)
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
    positive = min([interval[0], *filter(math.isfinite, statement.bounds)]) > 0
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
