"""``headlines.py`` of a package, if it has one: HEADLINES, the statements of papers that it answers
first, and FIRST, the experiments that its front page shows."""

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, get_args

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.report.result import Result
from lsa_lab.harness.report.tables import doubt, interval, markdown, number, verdict_cell
from lsa_lab.harness.run.checks import nearest
from lsa_lab.judging.claims import Claim, Verdict
from lsa_lab.judging.statistics import confidence_or, level

# Toy: weights constructed, drawn or briefly trained. Trained: a risk near that of ridge, or less.
Badge = Literal["theorem", "toy", "trained", "real table"]


@dataclass(frozen=True)
class Headline:
    """One statement of a paper and what decides it: a row of the ledger, or a theorem's test."""

    place: str  # "A1, Theorem 1"
    says: str  # one sentence, in our words
    badge: Badge  # what it was tried on
    row: str = ""  # "amplification.theorem_1"
    theorem: str = ""  # "tests/theorems/test_common_map.py"
    proved: Verdict | None = None  # what that theorem says of the statement

    def __post_init__(self):
        if self.badge not in get_args(Badge):
            raise ValueError(f"{self.place}: badge {self.badge!r}: choose {get_args(Badge)}")
        by_theorem = bool(self.theorem)
        if bool(self.row) == by_theorem or (self.proved is not None) != by_theorem:
            raise ValueError(f"{self.place}: give a row, or a theorem and what it proves")


def headlines_of(package: str) -> tuple[Headline, ...]:
    """HEADLINES of ``PACKAGE/headlines.py``, in their order; none without that file."""
    return tuple(getattr(_door(package), "HEADLINES", ()))


def first_of(package: str, names: Sequence[str]) -> tuple[str, ...]:
    """FIRST of the same file: the experiments that the front page shows; () where it is not said.

    Refused if it lists what is none of ``names``."""
    first = tuple(getattr(_door(package), "FIRST", ()))
    for name in first:
        if name not in names:
            best = nearest(name, list(names))
            raise RefusalError(
                f"FIRST of {package}/headlines.py: no experiment {name!r}; nearest {best!r}"
            )
    return first


def _door(package: str) -> ModuleType | None:
    name = f"{package}.headlines"
    return None if importlib.util.find_spec(name) is None else importlib.import_module(name)


def family_confidence(headlines: Sequence[Headline]) -> float:
    """What one of m judged rows must keep so that all of them do: 1 - (1 - confidence) / m."""
    return 1 - (1 - confidence_or(None)) / max(1, sum(bool(headline.row) for headline in headlines))


@dataclass(frozen=True)
class HeadlineRow:
    """One statement of a paper beside what was found."""

    headline: Headline
    result: Result | None  # None where a theorem decides
    claim: Claim | None
    family: Claim | None  # with the interval that all headlines share

    @property
    def verdict(self) -> str:
        return f"{self.headline.proved}" if self.claim is None else self.claim.verdict

    @property
    def doubt(self) -> str:
        return "proved" if self.claim is None else doubt(self.claim)

    @property
    def family_verdict(self) -> str:
        return self.verdict if self.family is None else self.family.verdict


def headline_rows(headlines: Sequence[Headline], whole: Sequence[Result]) -> list[HeadlineRow]:
    """The headlines whose experiments have results; a row that none of them has raises."""
    results = {result.name: result for result in whole}
    rows = []
    for headline in headlines:
        name, _, id = headline.row.partition(".")
        if not id:
            rows.append(HeadlineRow(headline, None, None, None))
        elif name in results:
            claims = results[name].claim_of
            if id not in claims:
                raise ValueError(f"{headline.place}: {name} has no row {id!r}")
            result, claim = claims[id]
            rows.append(HeadlineRow(headline, result, claim, result.family[id]))
    return rows


def family_level(front: Sequence[HeadlineRow]) -> str:
    """What the headline verdicts say together."""
    judged = [(row.claim, row.family) for row in front if row.claim and row.family]
    stand = sum(alone.verdict == together.verdict for alone, together in judged)
    share = 100 * (1 - (1 - confidence_or(None)) / max(1, len(judged)))
    return (
        "Tried on: theorem, proved for all sizes; toy, weights that were constructed, drawn or "
        "briefly trained; trained, models whose risk is near ridge's or less; real table, data. "
        f"{len(judged)} of these verdicts rest on samples. At {level()} each about one in "
        f"{1 / (1 - confidence_or(None)):.0f} intervals misses its truth. The last column judges "
        f"with intervals of {share:.2f} %, so that all of them cover at once with probability "
        f"{level()} (Bonferroni): {stand} of {len(judged)} verdicts stay."
    )


def headline_table(front: Sequence[HeadlineRow]) -> str:
    """A Markdown table with one row for each headline."""
    columns = ["Paper", "It says", "Tried on", "Measured", f"{level()} interval", "Verdict"]
    columns += ["All at once", "Where"]
    rows: list[Sequence[str]] = [columns, ("---",) * len(columns)]
    for row in front:
        measured, where = ("", ""), f"[theorem](../{row.headline.theorem})"
        if row.claim is not None and row.result is not None:
            measured = number(row.claim.value), interval(row.claim.interval)
            where = f"[{row.headline.row}]({row.result.folder}/README.md)"
        verdicts = verdict_cell(row.verdict, row.doubt), row.family_verdict
        paper = row.headline.place, row.headline.says, row.headline.badge
        rows.append((*paper, *measured, *verdicts, where))
    return markdown(rows)
