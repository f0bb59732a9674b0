"""The cells of tables of claims: numbers, intervals, verdicts and what is to be said of them."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsa_lab.harness.run.outcomes import interval, number
from lsa_lab.judging.claims import Claim

_MARKUP = r"[\\`*\[\]<>&|~$]|(?<!\w)_|_(?!\w)|(?<=:)/"  # the last of an address
_MOST_NAMED = 4  # cells that a remark lists one by one
MARKS = {  # what is to be known of a cell beside its verdict
    "†": "changed or added after a look at results, and judged by no fresh runs: post hoc",
    "‡": "changed or added after a look at results, and judged by runs that were drawn since",
    "°": "drawn anew as it stood",
    "~": "thin: an end of the interval is nearer to the bound than a tenth of its width",
}
LEGEND = "; ".join(f"{mark} {meaning}" for mark, meaning in MARKS.items()) + "."


def marks(claim: Claim) -> str:
    """The marks of a cell, "‡~"."""
    history = ("‡" if claim.redrawn else "†") if claim.revision else "°" * bool(claim.redrawn)
    return history + "~" * claim.thin


@dataclass(frozen=True)
class Family:
    """Judged numbers that share a sentence and a criterion, or one claim that shares them with
    none; below it the controls that guard it."""

    cells: tuple[Claim, ...]
    controls: tuple["Family", ...] = ()

    @property
    def is_family(self) -> bool:
        return len(self.cells) > 1

    @property
    def says(self) -> str:
        family = self.cells[0].family
        return family.says if self.is_family and family else self.cells[0].statement

    @property
    def source(self) -> str:
        return ", ".join(dict.fromkeys(claim.source for claim in self.cells))

    @property
    def criterion(self) -> str:
        """What is measured and its bounds, with the notes of the cells."""
        family = self.cells[0].family
        if not self.is_family or family is None:
            return self.cells[0].criterion
        notes = self.remarks("note")
        return family.criterion + (f" ({notes})" if notes else "")

    @property
    def columns(self) -> list[str]:
        """The values of its last axis, where it has two or more; else none."""
        cases = [claim.case for claim in self.cells if len(claim.case) > 1]
        return list(dict.fromkeys(_word([*case.values()][-1]) for case in cases))

    @property
    def lines(self) -> list[tuple[str, dict[str, Claim]]]:
        """Its cells by their place on all axes but the last, each by that on the last; where there
        is one axis or none a line for each cell."""
        groups: dict[str, dict[str, Claim]] = {}
        for claim in self.cells:
            *first, last = [_word(value) for value in claim.case.values()] or [""]
            place = (", ".join(first), last) if first else (last, "")
            groups.setdefault(place[0], {})[place[1]] = claim
        return list(groups.items())

    def remarks(self, name: str) -> str:
        """A text of the cells, "note", "revision" or "redrawn": once where all have the same."""
        texts: dict[str, list[Claim]] = {}
        for claim in self.cells:
            texts.setdefault(getattr(claim, name), []).append(claim)
        listed = {text: cells for text, cells in texts.items() if text}
        if len(texts) == 1:
            return "".join(listed)
        return "; ".join(f"{_which(of, self.cells)}: {text}" for text, of in listed.items())


def _which(chosen: Sequence[Claim], cells: Sequence[Claim]) -> str:
    """These of the cells in words: by the values that set them apart where they are all that have
    them, "margin or row, alone"; else one by one."""

    def values(claims: Sequence[Claim], axis: str) -> list[str]:
        return list(dict.fromkeys(_word(claim.case[axis]) for claim in claims))

    own = {axis: values(chosen, axis) for axis in cells[0].case}
    apart = {axis: own[axis] for axis in own if own[axis] != values(cells, axis)}
    having = [c for c in cells if all(_word(c.case[axis]) in apart[axis] for axis in apart)]
    if len(having) == len(chosen):
        return ", ".join(" or ".join(words) for words in apart.values())
    names = [case(claim) for claim in chosen]
    return "; ".join(names[:_MOST_NAMED] + ["and others"] * (len(names) > _MOST_NAMED))


def families(claims: Sequence[Claim]) -> list[Family]:
    """The claims by the family that they are cells of, in the order of their first ones; a control
    lies within the family before it."""
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        key = f"family {claim.family.id}" if claim.family else f"claim {claim.id}"
        groups.setdefault(key, []).append(claim)
    rows: list[Family] = []
    for family in map(Family, map(tuple, groups.values())):
        # A control says so in its source or in its sentence.
        if rows and re.search(r"\bcontrol\b", f"{family.source} {family.says}", re.I):
            rows[-1] = replace(rows[-1], controls=(*rows[-1].controls, family))
        else:
            rows.append(family)
    return rows


def case(claim: Claim) -> str:
    """The place of a cell on the axes of its family, "MLP, 4"; empty of any other claim."""
    return ", ".join(map(_word, claim.case.values()))


def _word(value: object) -> str:
    return str(value).replace("_", " ")


def doubt(claim: Claim) -> str:
    """What would decide an undecided cell."""
    if claim.verdict != "undecided":
        return ""
    if claim.interval == (-math.inf, math.inf):
        return "too few samples for an interval"
    if not claim.runs_factor <= 100:
        return "its value lies at the bound"
    return f"about {max(1.1, claim.runs_factor):.2g} times the samples would decide"


def verdict_words(claim: Claim) -> str:
    """A cell in Markdown: "1.4 [1.2, 1.6] **holds**‡"."""
    words = f"{number(claim.value)} {interval(claim.interval)} **{claim.verdict}**"
    return words + marks(claim) + (f", {doubt(claim)}" if doubt(claim) else "")


def literal(text: str) -> str:
    """A text from a file, in which nothing is Markdown, HTML or a formula; on one line."""
    return re.sub(_MARKUP, r"\\\g<0>", " ".join(text.split()))


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table, its first two rows the head and the rule."""
    escaped = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in escaped)
