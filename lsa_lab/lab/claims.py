"""Claims: a sentence, the quantity that decides it, and its bounds."""

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lsa_lab.lab.catalogue import UsageError
from lsa_lab.lab.intervals import (
    Interval,
    check_samples,
    geometric_mean,
    mean_interval,
    median_interval,
    ratio_interval,
)

STATISTICS: dict[str, tuple[Callable, Callable[..., Interval]]] = {
    "mean": (np.mean, mean_interval),
    "median": (np.median, median_interval),
    "ratio": (geometric_mean, ratio_interval),
}


class ClaimError(UsageError):
    """A claim that cannot be evaluated on a result; the message names claim and cell."""


@dataclass(frozen=True)
class Claim:
    """A statement, the quantity measured for it, and bounds that are chosen before the run.

    ``sample(result, **cell)`` returns the samples [R] of one cell, or None where a tier lacks the
    cell; with ``over``, there is a cell for each combination of these axes, and ``{axis}`` in the
    statement stands for its value. ``statistic`` "ratio" is the geometric mean, "value" a single
    number without spread. ``null`` is the id of the claim that says what the number would be
    without the effect, or "none: why". A ``simultaneous`` claim is one statement about all of its K
    cells: each is evaluated at level .05 / K.
    """

    id: str
    source: str  # a key of papers.py, such as "A1, Theorem 1", or "derived here"
    statement: str
    quantity: str  # what a sample is, as a noun phrase
    sample: Callable[..., Any]
    at_least: float = -math.inf
    at_most: float = math.inf
    statistic: Literal["mean", "median", "ratio", "value"] = "mean"
    over: Mapping[str, Sequence] = dataclasses.field(default_factory=dict)
    null: str = ""
    note: str = ""
    simultaneous: bool = False

    def __post_init__(self) -> None:
        if self.statistic not in (*STATISTICS, "value"):
            raise ValueError(f"{self.id}: statistic {self.statistic!r}: choose mean, median, ratio")
        if not self.at_least <= self.at_most:
            raise ValueError(f"{self.id}: at_least {self.at_least} is above {self.at_most}")

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The combinations of the axes of ``over``; one empty cell without axes."""
        values = itertools.product(*self.over.values())
        return [dict(zip(self.over, cell, strict=True)) for cell in values]

    @property
    def family(self) -> str:
        """The statement for all cells: axes in italics in the place of their values."""
        return re.sub(r"{(\w+)[^}]*}", r"*\1*", self.statement)

    @property
    def criterion(self) -> str:
        """The statistic, the quantity and its bounds, as "mean of the risk: at most 0.02"."""
        bounds = [f"at least {self.at_least:g}"] * math.isfinite(self.at_least)
        bounds += [f"at most {self.at_most:g}"] * math.isfinite(self.at_most)
        heads = {"value": "", "ratio": "geometric mean of "}
        text = heads.get(self.statistic, f"{self.statistic} of ") + self.quantity
        text += f": {' and '.join(bounds)}" if bounds else ""
        return text + (", at every place" if self.simultaneous else "")

    def judge(self, result: Any) -> list[dict[str, Any]]:
        """Return a row for each cell that has samples: value, interval, runs, verdict.

        Raises ClaimError if the samples of a cell are missing, empty or not finite.
        """
        rows = []
        confidence = 1 - 0.05 / (len(self.cells) if self.simultaneous else 1)
        for cell in self.cells:
            try:
                samples = self.sample(result, **cell)
                if samples is not None:
                    rows.append(self._row(cell, check_samples(np.atleast_1d(samples)), confidence))
            except (KeyError, AttributeError) as error:
                raise ClaimError(f"{self._name(cell)}: the result lacks {error}") from error
            except ValueError as error:
                raise ClaimError(f"{self._name(cell)}: {error}") from error
        return rows

    def _row(self, cell: dict[str, Any], x: np.ndarray, confidence: float) -> dict[str, Any]:
        if self.statistic == "value":
            low = high = value = float(x.item())
        else:
            centre, interval = STATISTICS[self.statistic]
            (low, high), value = interval(x, confidence), float(centre(x))
        known = math.isfinite(high - low)
        return {
            "id": self._name(cell),
            "claim": self.id,
            "cell": ", ".join(map(str, cell.values())),
            "source": self.source,
            "statement": self.statement.format(**cell),
            "criterion": self.criterion,
            "value": value,
            "low": low if known else None,
            "high": high if known else None,
            "runs": len(x),
            "verdict": self._verdict(low, high),
            "null": self.null,
            "status": "exploratory",  # until the registration of the run is compared
        }

    def _verdict(self, low: float, high: float) -> str:
        if math.isinf(self.at_least) and math.isinf(self.at_most):
            return "estimate"
        if self.at_least <= low and high <= self.at_most:
            return "holds"
        return "fails" if high < self.at_least or low > self.at_most else "undecided"

    def _name(self, cell: dict[str, Any]) -> str:
        values = ", ".join(map(str, cell.values()))
        return f"{self.id}[{values}]" if values else self.id
