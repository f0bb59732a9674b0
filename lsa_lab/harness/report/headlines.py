"""What is read first of a package. ``headlines.py`` has HEADLINES, level 0 of its ledger: a line
for each statement of a paper, and FIRST, the places of those that its front page shows.
``messages.py`` has MESSAGES, level 1: {theme: messages}. All numbers come from the cells that a
sentence names. ``so_what.py`` has SO_WHAT, what follows from an answer: {experiment: sentences}."""

import re
import string
from dataclasses import dataclass
from typing import get_args

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run.checks import nearest
from lsa_lab.harness.run.laboratory import constant_of
from lsa_lab.judging.claims import Verdict

NONE_NEEDED = "none needed, because "
COUNTS = ("holds", "fails", "cells")  # fields that count over all cells of a sentence
ALL = "all"  # the field that has the range of all cells


@dataclass(frozen=True)
class Words:
    """A sentence whose numbers are those of the cells that it stands on.

    ``rows`` names them: "experiment.row" or a pattern, "experiment.*_row", with a space between.
    In ``text`` "{0}" is the number of the first name, or the range of its cells; "{0:i}" has the
    interval beside it, and ``cells.SCALES`` lists more; "{all}" is the range of all cells, and
    "{holds} of {cells}" counts them.
    ``stands`` are the verdicts that the words suppose, for all cells or name by name: where they
    move, the sentence is out of date. "counted": the sentence itself says how many.
    """

    text: str
    rows: str = ""
    stands: str = ""

    def __post_init__(self):
        verdicts, names = self.stands.split(), self.rows.split()
        if self.stands == "counted":
            if not set(self.fields) & set(COUNTS):
                raise ValueError(f"{self.text}: it counts no cells: write {{holds}} of {{cells}}")
        elif not set(verdicts) <= set(get_args(Verdict)) or len(verdicts) not in (0, 1, len(names)):
            raise ValueError(f"{self.text}: stands {self.stands!r}: one verdict, or one a name")
        for name in self.fields:
            if name not in (*COUNTS, ALL) and not (name.isdigit() and int(name) < len(names)):
                raise ValueError(f"{self.text}: no {name!r} among the rows {names}")

    @property
    def fields(self) -> list[str]:
        parsed = string.Formatter().parse(self.text)
        return [re.split(r"[.\[]", name)[0] for _, name, _, _ in parsed if name is not None]

    @property
    def expected(self) -> dict[str, str]:
        """{name: the verdict that the words suppose of it}; empty where they suppose none."""
        verdicts, names = self.stands.split(), self.rows.split()
        if not verdicts or self.stands == "counted":
            return {}
        return dict(zip(names, verdicts * (len(names) if len(verdicts) == 1 else 1), strict=True))


def _check_null(place: str, null: Words) -> None:
    if not null.fields and not null.text.startswith(NONE_NEEDED):
        raise ValueError(f"{place}: name the null's rows and show it, or {NONE_NEEDED!r} and why")


@dataclass(frozen=True)
class Proof:
    """What a theorem says of a statement."""

    verdict: Verdict
    test: str  # "tests/theorems/test_common_map.py"
    condition: str = ""  # under which alone it says so, "if gradients are equal"


@dataclass(frozen=True)
class Headline:
    """One statement of a paper: what proof, trained regression and a language model say of it, and
    what explains that: the null or the rival that accounts for the numbers."""

    place: str  # "A1, Theorem 1"
    says: str  # one sentence, in our words
    explained: Words
    proved: Proof | None = None
    trained: Words | None = None  # its verdict is that of its cells; the words say what they are
    language: Words | None = None

    def __post_init__(self):
        _check_null(self.place, self.explained)
        judged = [words for words in (self.trained, self.language) if words]
        if not judged and self.proved is None:
            raise ValueError(f"{self.place}: nothing decides it: name rows, or a proof")
        for words in judged:
            every = {str(i) for i in range(len(words.rows.split()))}
            if not every or not (ALL in words.fields or every <= set(words.fields)):
                raise ValueError(f"{self.place}: {words.text!r} hides a number of its rows")


@dataclass(frozen=True)
class Message:
    """One sentence that a reader can repeat, and its null: what the number would be without the
    effect. The null's ``beside`` are rows of its own, by default those of the message."""

    says: str
    rows: str
    null: str
    beside: str = ""
    stands: str = "holds"

    def __post_init__(self):
        _check_null(self.says, self.null_words)
        if not self.stands or not self.rows:
            raise ValueError(f"{self.says}: name its rows and the verdicts that it supposes")

    @property
    def words(self) -> Words:
        return Words(self.says, self.rows, self.stands)

    @property
    def null_words(self) -> Words:
        needed = "" if self.null.startswith(NONE_NEEDED) else self.rows
        return Words(self.null, self.beside or needed)


def first_of(package: str) -> tuple[str, ...]:
    """FIRST of ``headlines.py``: the places of the headlines that the front page shows.

    Refused if it lists what is the place of none."""
    first = tuple(constant_of(package, "headlines", "FIRST", ()))
    places = [line.place for line in constant_of(package, "headlines", "HEADLINES", ())]
    for place in first:
        if place not in places:
            best = nearest(place, places)
            raise RefusalError(
                f"FIRST of {package}/headlines.py: no headline {place!r}; nearest {best!r}"
            )
    return first
