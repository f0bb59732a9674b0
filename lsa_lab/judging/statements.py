"""A statement: what a source says, what is measured for it, the bounds, and the sample it takes.

Statements that share a sentence and a criterion are one family: ``cells`` names its judged numbers.
"""

import dataclasses
import itertools
import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from lsa_lab.judging.statistics import Interval

Statistic = Literal["mean", "median", "ratio", "value", "estimate"]
METHODS = {  # how the interval of a statistic is found
    "mean": "Student's interval of the mean",
    "median": "order statistics",
    "ratio": "Student's interval of the mean logarithm",
    "value": "none",
    "estimate": "normal, from its standard error",
}
_WORDS = ("source", "says", "measured", "over", "note", "revision", "redrawn")
_MOST_NAMED = 4  # cases that the sentence of a family lists


@dataclass(frozen=True)
class Statement:
    """What a source says, what is measured for it, and the bounds, fixed before the run.

    ``statistic`` is taken over independent runs: the mean with Student's interval, the median with
    that of order statistics, or "ratio", the geometric mean of positive samples. A "value" is one
    number without a spread, an "estimate" a pair (number, standard error). ``margin`` m asks for
    equivalence: within [-m, m], for a ratio within [1 / (1 + m), 1 + m]. ``unjudged`` says why
    there is no bound: a number beside others, or one whose bound was set upon the effect itself.

    A family has ``cells``, {id: {axis: value}}: each is judged by ``sample(result, **axes)``, and
    the words are templates in which "{axis}" stands for the value, or for what ``words(**axes)``
    says.
    """

    id: str  # a literal, unique in its experiment; of a family its own, beside those of the cells
    source: str  # "Zhang et al. 2306.09927, Theorem 4.1", or "derived here"
    says: str  # one sentence
    measured: str  # what a sample is, as a noun phrase
    statistic: Statistic = "mean"
    at_least: float | None = None
    at_most: float | None = None
    margin: float | None = None
    unjudged: str = ""  # why nothing is required: an estimate, without a verdict
    over: str = "runs"  # what a sample is one of
    overlap: float = 0.0  # of runs that split one table: rows for testing over rows for training
    standard_errors: float = 1.96  # half the width of the interval of an "estimate"
    note: str = ""  # a reading of the source, or a limit of the criterion
    revision: str = ""  # what was changed or added after a look at results
    redrawn: str = ""  # the fresh runs that judge it since that look: "12 fresh runs, 8 before"
    sample: Callable[..., Any] | None = None  # (result, **axes) -> [R], or None: nothing to judge
    cells: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    words: Callable[..., Mapping[str, Any]] | None = None  # (**axes) -> more words for templates
    message: str = ""  # of a family: one sentence for all cells; else ``says`` with its cases
    family: str = ""  # of a cell: the id of its family
    case: Mapping[str, Any] = field(default_factory=dict)  # of a cell: the value on each axis

    def __post_init__(self):
        if self.statistic not in get_args(Statistic):
            choices = ", ".join(get_args(Statistic))
            raise ValueError(f"statement {self.id}: statistic {self.statistic!r}: choose {choices}")
        bounded = self.at_least is not None or self.at_most is not None
        if bounded + (self.margin is not None) + bool(self.unjudged) != 1:
            words = "give at_least, at_most or both, or a margin; or say why it is unjudged"
            raise ValueError(f"statement {self.id}: {words}")
        low, high = self.bounds
        if not low <= high:
            raise ValueError(f"statement {self.id}: no number is >= {low:g} and <= {high:g}")
        if len({tuple(case) for case in self.cells.values()}) > 1:
            raise ValueError(f"statement {self.id}: its cells have other axes than each other")

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
        if self.unjudged:
            kept = [f"is estimated without a bound: {self.unjudged}"]
        note = f" ({self.note})" if self.note else ""
        return f"{what} {' and '.join(kept)}{note}"

    @property
    def whole(self) -> "Statement":
        """The family as one statement: words in which each template names the cases it stands for;
        of a statement without cells itself."""
        if not self.cells:
            return self
        every = [self._named(case) for case in self.cells.values()]
        filled: dict[str, Any] = {name: _merged(getattr(self, name), every) for name in _WORDS}
        filled |= {"says": self.message or filled["says"], "note": ""}
        return dataclasses.replace(self, **filled, cells={}, words=None)

    def judged(self) -> tuple["Statement", ...]:
        """The cells of a family, each a statement with words of its own; else the statement."""
        if not self.cells:
            return (self,)
        return tuple(self._cell(id, case) for id, case in self.cells.items())

    def sample_of(self, result: Any) -> Any:
        """What a cell, or a statement without cells, is judged by."""
        if self.sample is None:
            raise ValueError(f"statement {self.id}: it has no sample; give sample=(result) -> [R]")
        return self.sample(result, **self.case)

    def _cell(self, id: str, case: Mapping[str, Any]) -> "Statement":
        words = self._named(case)
        filled: dict[str, Any] = {name: _filled(getattr(self, name), words) for name in _WORDS}
        own: dict[str, Any] = dict(id=id, family=self.id, case=case, cells={}, words=None)
        return dataclasses.replace(self, **filled, **own)

    def _named(self, case: Mapping[str, Any]) -> dict[str, Any]:
        return dict(case) | dict(self.words(**case) if self.words else {})


def grid(ids: str, **axes: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """The cells of a family: ids in one text, the last axis fastest, and the values of each axis.

    ``grid("linear_few linear_many softmax_few softmax_many", kernel=("linear", "softmax"),
    shots=(4, 40))``. An id "-" leaves its place out.
    """
    names = ids.split()
    cases = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    if len(names) != len(cases):
        raise ValueError(f"{len(names)} ids, {names}, and {len(cases)} places in the grid")
    for name in names:
        if name != "-" and names.count(name) > 1:
            raise ValueError(f"{name!r} is there twice among the ids {names}")
    return {name: case for name, case in zip(names, cases, strict=True) if name != "-"}


def having(cells: Mapping[str, Mapping[str, Any]], **axes: Iterable[Any]) -> dict[str, Any]:
    """The cells whose places on these axes are among those named: what a smaller tier has."""
    allowed = {axis: tuple(values) for axis, values in axes.items()}
    return {
        id: case
        for id, case in cells.items()
        if all(case[axis] in values for axis, values in allowed.items())
    }


def cells_of(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Every judged number of the statements, families cell by cell, in their order."""
    return tuple(cell for statement in statements for cell in statement.judged())


def samples_of(statements: Iterable[Statement], result: Any) -> dict[str, Any]:
    """{id: samples} of every cell, taken from an experiment's result."""
    return {cell.id: cell.sample_of(result) for cell in cells_of(statements)}


def _filled(template: str, words: Mapping[str, Any]) -> str:
    return template.format_map(words) if "{" in template else template


def _merged(template: str, every: Sequence[Mapping[str, Any]]) -> str:
    """A template with all values of each word, "attention / MLP"; "each part" where it has many."""
    text = ""
    for literal, name, spec, _ in string.Formatter().parse(template):
        text += literal
        if name is not None:
            values = dict.fromkeys(format(words[name], spec or "") for words in every)
            values.pop("", None)
            text += " / ".join(values) if len(values) <= _MOST_NAMED else f"each {name}"
    return text
