"""The statements of papers that a package answers first: its ``headlines.py``, if it has one."""

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lsa_lab.claims import Verdict

# Toy: weights that were constructed, drawn or briefly trained. Trained: a risk near the best known.
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
    name = f"{package}.headlines"
    if importlib.util.find_spec(name) is None:
        return ()
    return tuple(importlib.import_module(name).HEADLINES)


def confidence_of(headlines: Sequence[Headline], confidence: float) -> float:
    """What one of m judged rows must keep so that all of them do: 1 - (1 - confidence) / m."""
    return 1 - (1 - confidence) / max(1, sum(bool(headline.row) for headline in headlines))
