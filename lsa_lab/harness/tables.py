"""The cells of tables of claims: numbers, intervals, verdicts and what is to be said of them."""

import math
from collections.abc import Sequence

from lsa_lab.claims import Claim


def doubt(claim: Claim) -> str:
    """What is to be said of a verdict: "thin", or what would decide an undecided one."""
    if claim.verdict != "undecided":
        return "thin" if claim.thin else ""
    if claim.interval == (-math.inf, math.inf):
        return "too few samples for an interval"
    if not claim.runs_factor <= 100:
        return "its value lies at the bound"
    return f"about {max(1.1, claim.runs_factor):.2g} times the samples would decide"


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}"


def interval(ends: tuple[float, float]) -> str:
    """As "[0.1, 0.2]"; "unknown" without an end."""
    if ends == (-math.inf, math.inf):
        return "unknown"
    return f"[{number(ends[0])}, {number(ends[1])}]"


def verdict_cell(word: str, doubt: str) -> str:
    """As "**holds**, thin"."""
    return f"**{word}**{', ' if doubt else ''}{doubt}"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table, its first two rows the head and the rule."""
    escaped = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in escaped)
