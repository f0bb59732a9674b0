"""What is judged, as a panel: a row for each statement, with its interval and where it would hold.

The scale of the axis is the caller's, and set before.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lsa_lab.harness.draw import footer
from lsa_lab.harness.draw.style import BLACK, COLOURS
from lsa_lab.judging.claims import Claim, judge
from lsa_lab.judging.statements import Statement, cells_of
from lsa_lab.judging.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS: dict[str, dict[str, Any]] = {  # no verdict is told by its colour alone
    "holds": {"color": COLOURS[0], "marker": "o", "ms": 4.5},
    "fails": {"color": COLOURS[1], "marker": "X", "ms": 6.5, "mec": "white"},
    "undecided": {"color": BLACK, "marker": "o", "ms": 4.5, "mfc": "white"},
    "estimated": {"color": BLACK, "marker": "|", "ms": 7},
}


def rows(
    ax: "Axes",
    statements: Iterable[Statement],
    samples: Mapping[str, Any],
    span: Interval,
    ids: Iterable[str] | None = None,
) -> None:
    """The cells of these ids from the top, by default all that have a label; none that has None to
    judge.

    The axis is ``span``. An interval that leaves it ends in an arrow at the edge; a value beyond it
    is written there, beside an open triangle, so that nobody takes the edge for the value.
    """
    ax.set_label(footer.JUDGED)
    by_id = {cell.id: cell for cell in cells_of(statements)}
    if ids is None:
        ids = [id for id, cell in by_id.items() if cell.label]
    kept = [by_id[id] for id in ids if samples[id] is not None]
    claims = judge(kept, {cell.id: samples[cell.id] for cell in kept})
    for row, (cell, claim) in enumerate(zip(kept, claims, strict=True)):
        if not cell.unjudged:
            _region(ax, row, cell.bounds, span)
        _interval(ax, row, claim, span)
    ax.set_yticks(range(len(kept)), [cell.label for cell in kept], fontsize=7)
    ax.set(xlim=span, ylim=(len(kept) - 0.4, -0.6))


def _region(ax: "Axes", row: int, bounds: Interval, span: Interval) -> None:
    """Where the row would hold, with a line at each bound."""
    low, high = np.clip(bounds, *span)
    ax.barh(row, high - low, 0.8, low, color="grey", alpha=0.2, lw=0)
    inside = [bound for bound in bounds if span[0] <= bound <= span[1]]
    ax.vlines(inside, row - 0.4, row + 0.4, color="grey", lw=1)


def _interval(ax: "Axes", row: int, claim: Claim, span: Interval) -> None:
    point = LOOKS[claim.verdict]
    look = {"color": point["color"], "clip_on": False, "zorder": 3}
    ax.plot(np.clip(claim.interval, *span), [row, row], "-", **look)
    beyond = (claim.interval[0] < span[0], claim.interval[1] > span[1])
    for edge, arrow, leaves in zip(span, "<>", beyond, strict=True):
        if leaves:
            ax.plot(edge, row, arrow, ms=4, **look)
    if span[0] <= claim.value <= span[1]:
        ax.plot(claim.value, row, mew=0.8, **(point | look))
        return
    right = int(claim.value > span[1])
    ax.plot(span[right], row, "<>"[right], mfc="white", ms=6, **look)
    ax.annotate(
        f"{claim.value:.3g}".replace("-", "\u2212"),
        (span[right], row),
        (-6 if right else 6, 0),
        textcoords="offset points",
        ha="right" if right else "left",
        va="center",
        fontsize=7,
        bbox={"facecolor": "white", "lw": 0, "pad": 0.5},
        zorder=4,
    )
