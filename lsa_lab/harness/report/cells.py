"""Judged cells by the names of their rows, and sentences that are generated from them."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby

from lsa_lab.harness.report.headlines import Words
from lsa_lab.harness.report.result import Result
from lsa_lab.harness.report.tables import MARKS, marks
from lsa_lab.harness.run.outcomes import interval, number, together
from lsa_lab.judging.claims import Claim

SCALES: dict[str, Callable[[float], float]] = {  # what a format like "{0:%}" makes of a number x
    "": lambda x: x,
    "%": lambda x: 100 * x,
    "exp": math.exp,
    "size": abs,
}


@dataclass(frozen=True)
class Cells:
    """Judged cells, each with the result that it stands in."""

    pairs: tuple[tuple[Result, Claim], ...]

    @property
    def claims(self) -> list[Claim]:
        return [claim for _, claim in self.pairs]

    @property
    def results(self) -> list[Result]:
        """The results that they stand in, each once."""
        return list({result.anchor: result for result, _ in self.pairs}.values())

    def count(self, *verdicts: str) -> int:
        return sum(claim.verdict in verdicts for claim in self.claims)

    @property
    def verdict(self) -> str:
        """The one that all cells have, or "3 of 6"."""
        return together([claim.verdict for claim in self.claims])

    @property
    def marks(self) -> str:
        own = "".join(marks(claim) for claim in self.claims)
        return "".join(mark for mark in MARKS if mark in own)

    def __format__(self, spec: str) -> str:
        """ "0.2 to 0.5", each cell on the scale ``spec``; "i": with the hull of their intervals."""
        if spec == "verdict":
            return self.verdict
        scale = SCALES["" if spec == "i" else spec]
        values = sorted(scale(claim.value) for claim in self.claims)
        ends = dict.fromkeys((number(values[0]), number(values[-1])))
        text = " to ".join(ends)
        if spec != "i":
            return text
        lows, highs = zip(*(claim.interval for claim in self.claims), strict=True)
        return f"{text} {interval((min(lows), max(highs)))}"


class Index:
    """All judged cells by "experiment.row"; smaller tiers give what the largest lacks."""

    def __init__(self, whole: Iterable[Result]):
        self.pairs = {
            f"{result.name}.{id}": pair for result in whole for id, pair in result.claim_of.items()
        }
        self.names = {row.partition(".")[0] for row in self.pairs}
        self.strange: dict[str, str] = {}  # names that no row has, and why they are in no sentence

    def cells(self, name: str) -> Cells:
        """What a name of ``Words.rows`` stands for; nothing where its experiment has no result."""
        if name in self.pairs:
            return Cells((self.pairs[name],))
        pairs = tuple(pair for row, pair in self.pairs.items() if fnmatchcase(row, name))
        if not pairs and name.partition(".")[0] in self.names:
            self.strange[name] = "a sentence names it, and that experiment has no such row"
        return Cells(pairs)

    def sentence(self, words: Words) -> "Sentence | None":
        """The words with their numbers; None where an experiment that they name has no result."""
        parts = [self.cells(name) for name in words.rows.split()]
        if not all(part.pairs for part in parts):
            return None
        return Sentence(words, tuple(parts))


@dataclass(frozen=True)
class Sentence:
    """Words beside the cells that they stand on, a part for each name."""

    words: Words
    parts: tuple[Cells, ...]

    @property
    def cells(self) -> Cells:
        pairs = [pair for part in self.parts for pair in part.pairs]
        return Cells(tuple({id(claim): (result, claim) for result, claim in pairs}.values()))

    @property
    def text(self) -> str:
        cells = self.cells
        counts = {"holds": cells.count("holds"), "fails": cells.count("fails")}
        counts["cells"] = cells.count("holds", "fails", "undecided")
        return self.words.text.format(*self.parts, all=cells, **counts)

    @property
    def moved(self) -> str:
        """What is no longer as the words suppose: "amplification.order holds, not fails"."""
        expected = self.words.expected
        parts = zip(self.words.rows.split(), self.parts, strict=True)
        return ", ".join(
            f"{name} {part.verdict}, not {expected[name]}"
            for name, part in parts
            if name in expected and set(part.verdict.split()) != {expected[name]}
        )

    @property
    def rows(self) -> list[tuple[Result, list[str]]]:
        """The names of its rows by the result that they stand in: "order", "*_lead"."""
        names = zip(self.words.rows.split(), self.parts, strict=True)
        pairs = [(part.pairs[0][0], name.partition(".")[2]) for name, part in names]
        return [
            (group[0][0], [name for _, name in group])
            for _, each in groupby(pairs, key=lambda pair: pair[0].anchor)
            if (group := list(each))
        ]
